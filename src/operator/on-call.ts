/** The questions of sql/README.md, "On call": their names in the API and on the command line, and how one cell answers them. */
import type { Kysely } from 'kysely'
import type { Functions } from '../database/functions.ts'
import type { DB } from '../db.types.ts'

type Cell = { db: Kysely<DB>; fn: Functions }
type Question = { text: string; needsCue?: true; answer: (cell: Cell, cue_id: string) => Promise<object[]> }

export const questions = {
  late: { text: 'Why is this cue late?', needsCue: true, answer: ({ fn }, cue_id) => fn.whyLate({ cue_id }) },
  floods: { text: 'Which account floods now?', answer: ({ fn }) => fn.floods({}) },
  forecast: { text: 'What fires in the next hour?', answer: ({ fn }) => fn.forecast({}) },
  stuck: {
    text: 'What is stuck?',
    answer: ({ db }) => db.selectFrom('stuck_executions').selectAll().orderBy('since').limit(100).execute()
  },
  changes: { text: 'Who paused it?', needsCue: true, answer: ({ fn }, cue_id) => fn.whoChanged({ cue_id }) },
  retries: {
    text: 'How many retries wait, and until when?',
    answer: ({ db }) => db.selectFrom('waiting_retries').selectAll().execute()
  },
  replicas: { text: 'Is this replica alive?', answer: ({ fn }) => fn.replicas({}) },
  destinations: { text: 'Which destination is slow?', answer: ({ fn }) => fn.destinations({}) },
  disk: { text: 'How much disk per day?', answer: ({ fn }) => fn.diskUse({}) },
  holds: {
    text: 'How do I stop everything?',
    answer: ({ db }) => db.selectFrom('current_holds').selectAll().orderBy('since').limit(1000).execute()
  }
} satisfies Record<string, Question> as Readonly<Record<string, Question>>
