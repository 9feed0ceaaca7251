/** What help says beside commands and options. */
import { exitCodes } from './exit-codes.ts'

export const exitCodeHelp = `Exit codes
  0  done
  1  refused by the service, or failed
  2  invalid arguments, or a missing, invalid or insufficient key
  3  not found
  4  the service is unreachable or unavailable
  ${exitCodes.differs}  something differs (apply --exit-code)`

export const environmentHelp = `Environment
  PGCUE_API_KEY    API key (default: the key stored by pgcue login)
  PGCUE_BASE_URL   address of the service (default: that of the last login, else http://localhost:8080)
  NO_COLOR         disable colours on a terminal
  XDG_CONFIG_HOME  directory of pgcue/credentials.json, which stores keys and only you can read (default: ~/.config)`
