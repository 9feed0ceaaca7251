/** Makes elements and components, checked as their types say. Children follow the properties. */
import { type ComponentChildren, h as create, type JSX, type VNode } from 'preact'

type Component<P> = (props: P) => ComponentChildren
type Given<P> = Omit<P, 'children'> & { key?: string | number | null }

type Data = { [name: `data-${string}`]: unknown }

export function h<Name extends keyof JSX.IntrinsicElements>(
  name: Name,
  props: JSX.IntrinsicElements[Name] & Data,
  ...children: ComponentChildren[]
): VNode
export function h<P>(component: Component<P>, props: NoInfer<Given<P>>, ...children: ComponentChildren[]): VNode
export function h(type: unknown, props: object, ...children: ComponentChildren[]): VNode {
  return create(type as never, props as never, ...children) as VNode
}
