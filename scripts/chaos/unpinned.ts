/** Leaves scheduling to the system. Must be imported before modules that read PIN. */
process.env.PIN ??= '0'
