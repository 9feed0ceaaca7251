export const start = '2030-01-07T08:30:00Z'
export const url = 'http://127.0.0.1:5555/hook'
export const hourly = { name: 'Hourly', cron: '0 * * * *', callback_url: url }
export const path = (key: string) => `/v1/cues/by-key/${encodeURIComponent(key)}`
export const taken = (cue_id: string) => ({ status: 409, body: { error: { code: 'key_taken', cue_id, message: RegExp(cue_id) } } })
