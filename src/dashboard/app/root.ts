/** What the page says about the service. */
const { root = '', local, sold, outbox, session } = document.documentElement.dataset

/** The path of BASE_URL, which a proxy may strip before the service sees it. */
export const serviceRoot = root
/** Whether the service has an embedded database, as on a developer's machine. */
export const isLocal = local !== undefined
/** Folder that mails are written to while SMTP_URL is unset. */
export const outboxFolder = outbox
/** Whether plans can be bought. */
export const isSold = sold !== undefined
/** Whether the browser sent a session when it loaded the page; it may have ended. */
export const mayBeSignedIn = session !== undefined
/** The service's address, for commands to copy. */
export const serviceUrl = location.origin + root
