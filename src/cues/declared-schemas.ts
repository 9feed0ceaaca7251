/** Declared cues on the wire. */
import { type Static, Type } from 'typebox'
import { DeclaredGate } from '../gates/schemas.ts'
import type { Json } from '../json/canonical-json.ts'
import { DeclaredSchedule } from '../schedule/schemas.ts'
import { AnyJson, Nullable, Strict } from '../schemas.ts'
import { bounds } from './columns.ts'
import { definition, description } from './schemas.ts'

const Switch = (description: string) => Type.Optional(Nullable(Type.Boolean({ description })))

/** A cue in a list to apply. */
export const DeclaredCue = Strict(
  {
    ...definition(DeclaredSchedule, Strict),
    key: Type.String({ ...bounds.key }),
    paused: Switch('Whether the cue is created paused. An existing cue keeps its status.')
  },
  { description }
)
export type DeclaredCue = Static<typeof DeclaredCue>

/** Maximum cues of a request. */
export const MAX_DECLARED = 500

export const Apply = Strict({
  set: Type.String({ ...bounds.managed_by, description: 'The name of the set, stored as `managed_by` of its cues.' }),
  // Each is validated alone, so that all errors are reported, with the keys.
  cues: Type.Unsafe<Json>({
    'x-json': 'array',
    items: DeclaredCue,
    maxItems: MAX_DECLARED,
    description: 'The cues as they should be. Omitted fields have their defaults.'
  }),
  gates: Type.Optional(
    Type.Array(DeclaredGate, { maxItems: 100, description: 'Gates as they should be, whichever set uses them. None is deleted.' })
  ),
  prune: Switch('Whether to delete cues of this set that are not in the list.'),
  dry_run: Switch('Whether to return what would be done, and do nothing.'),
  take_over: Switch('Whether cues of other sets become cues of this one; otherwise they are refused.')
})
export type Apply = Static<typeof Apply>

const Keys = (description: string) => Type.Array(Type.String(), { description })
const Change = Type.Object({ from: AnyJson(), to: AnyJson() })
export const Applied = Type.Object({
  set: Type.String(),
  dry_run: Type.Boolean(),
  created: Keys('Keys of new cues.'),
  updated: Type.Array(
    Type.Object({
      key: Type.String(),
      changes: Type.Unsafe<Record<string, Static<typeof Change>>>({
        type: 'object',
        additionalProperties: Change,
        description:
          'What changed, by field, such as `schedule.cron`. Headers are masked; for a payload over 2 KB, its size and SHA-256 in canonical form.'
      })
    })
  ),
  unchanged: Keys('Keys of cues that were the same; nothing was written for them.'),
  pruned: Keys('Keys of deleted cues.'),
  gates: Type.Optional(
    Type.Object({
      created: Keys('Keys of new gates.'),
      updated: Keys('Keys of changed gates.'),
      unchanged: Keys('Keys of gates that were the same.')
    })
  )
})
export type Applied = Static<typeof Applied>
