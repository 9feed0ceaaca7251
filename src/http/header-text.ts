/** What the name and the value of a header that is sent may contain: RFC 9110, section 5. */

/** A token. */
export const headerName = /^[!#$%&'*+\-.^_`|~\w]+$/

/** Latin-1 without control characters, so without line breaks. */
export const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/
