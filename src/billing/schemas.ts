/** Billing on the wire. */
import { Type } from 'typebox'
import { orElse, Strict } from '../schemas.ts'

export const Checkout = Strict({
  plan: orElse('invalid_plan', 'plan must be pro or scale.', Type.Enum(['pro', 'scale'])),
  interval: orElse('invalid_interval', 'interval must be monthly or annual.', Type.Enum(['monthly', 'annual']))
})
export const CheckoutUrl = Type.Object({
  checkout_url: Type.String({ description: 'URL of the page for paying or, with an existing subscription, for changing it.' })
})
export const PortalUrl = Type.Object({
  portal_url: Type.String({ description: 'URL of the page for managing cards, invoices and the subscription.' })
})
export const Received = Type.Object({ received: Type.Boolean() })
