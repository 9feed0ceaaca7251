/** Chaos leaves its processes to the system's scheduler. Imported before what reads PIN. */
process.env.PIN ??= '0'
