/** The dashboard in a real browser: its main paths, by mouse and keyboard. Each file can also be run alone; together, they share a browser and a service. */
import './dashboard/sign-in.test.ts'
import './dashboard/work.test.ts'
import './dashboard/lists.test.ts'
import './dashboard/access.test.ts'
import './dashboard/live.test.ts'
import './dashboard/looks.test.ts'
import './dashboard/tour.test.ts'
import './dashboard/account.test.ts'
