/** Signed webhooks that announce a new memory block to its subscribers: the version that is current when they are sent. */
import type { Functions } from '../database/functions.ts'
import { afterDelays, type SignedWebhookOptions, workSignedWebhooks } from '../deliveries/signed-webhooks.ts'
import { release } from './block.ts'

type Options = SignedWebhookOptions & { fn: Pick<Functions, 'memoryNotice' | 'endMemoryNotice' | 'addJob' | 'heldReason'> }
type Job = { subscription_id: string; account_id: string }

const name = 'memory_block.updated'

/** Works off the queue `memory_updates`. */
export const startMemoryUpdates = async (options: Options): Promise<void> => {
  const { fn } = options
  await workSignedWebhooks(options, {
    queue: 'memory_updates',
    retryAt: afterDelays(options.now, [10_000, 60_000, 300_000, 1_800_000]),
    read: async ({ subscription_id }: Job) => {
      const notice = await fn.memoryNotice({ subscription_id, release })
      if (!notice) return
      const { url, secrets, ...update } = notice
      return {
        url,
        secrets,
        id: `${subscription_id}_${update.version}`,
        event: { event: name, ...update },
        headers: () => ({ 'X-Service-Event': name })
      }
    },
    fields: ({ subscription_id }) => ({ subscription_id }),
    onDone: ({ subscription_id }, { url, event }, { gone }) =>
      fn.endMemoryNotice({ subscription_id, version: gone ? null : event.version, url }),
    key: ({ subscription_id }) => subscription_id
  })
}
