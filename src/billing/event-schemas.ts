/** The parts of Stripe's events that are read. A correctly signed event may still have an unexpected shape. */
import { type TSchema, Type } from 'typebox'
import { Check } from 'typebox/value'
import { Nullable } from '../schemas.ts'

// PostgreSQL text cannot contain NUL.
const Id = Type.String({ minLength: 1, maxLength: 255, pattern: '^[^\\u0000]*$' })
const Thing = Type.Union([Id, Type.Object({ id: Id })])
const Seconds = Type.Integer({ minimum: 0, maximum: 253_402_300_799 })
const maybe = (schema: TSchema) => Type.Optional(Nullable(schema))
const metadata = maybe(Type.Record(Type.String(), Type.String()))

const Event = Type.Object({ id: Id, type: Id, created: Seconds, data: Type.Object({ object: Type.Object({}) }) })
const Checkout = Type.Object({
  subscription: maybe(Thing),
  customer: maybe(Thing),
  client_reference_id: maybe(Type.String()),
  metadata
})
const Subscription = Type.Object({
  id: Id,
  customer: Thing,
  status: Id,
  items: maybe(Type.Object({ data: Type.Array(Type.Object({ price: Type.Object({ id: Id }) })) })),
  metadata
})
const Invoice = Type.Object({
  customer: maybe(Thing),
  subscription: maybe(Thing),
  parent: maybe(Type.Object({ subscription_details: maybe(Type.Object({ subscription: maybe(Thing) })) })),
  next_payment_attempt: maybe(Seconds)
})

const objects: Readonly<Record<string, TSchema>> = {
  'checkout.session.completed': Checkout,
  'customer.subscription.created': Subscription,
  'customer.subscription.updated': Subscription,
  'customer.subscription.deleted': Subscription,
  'invoice.payment_failed': Invoice
}

/** Whether this is an event, with the members read for its type. */
export const isEvent = (value: unknown): boolean => {
  if (!Check(Event, value)) return false
  const { type, data } = value as { type: string; data: { object: object } }
  return !Object.hasOwn(objects, type) || Check(objects[type]!, data.object)
}
