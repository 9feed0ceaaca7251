import { readValues, renderPayload } from './template.ts'

/** Columns of an execution. */
type Templated = { payload: string; template_values: string | null }

/** An execution with the payload that is sent. */
export const sent = <Row extends Templated>(row: Row): Row =>
  row.template_values === null ? row : { ...row, payload: renderPayload(row.payload, readValues(row.template_values)) }
