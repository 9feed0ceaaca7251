/** Advice for common errors of deliveries. */
const advice: [pattern: RegExp, text: string][] = [
  [/^connection refused/, 'Nothing listens at this address. Check that the receiver is running, and the port in the callback URL.'],
  [/^DNS:/, 'Check the host name in the callback URL for a typo, and that public DNS has it.'],
  [/^TLS:/, 'Renew the certificate of the receiver, serve its whole chain, or use the host name that it was issued for.'],
  [/^blocked address/, 'Deliveries reach public addresses only. Use one, or a worker, which needs no open port.'],
  [/^(timed out|host not responding)/, 'Respond with a 2xx first and work afterwards, or raise the timeout of the cue.'],
  [/^redirects/, 'Use the address that it redirects to as the callback URL.'],
  [/^answered 40[13]/, 'Check the credentials in the headers of the cue, and the webhook secret if the receiver verifies signatures.'],
  [/^answered 40[45]/, 'Check the path in the callback URL, and the method.'],
  [/^answered 410/, 'The receiver is gone for good, so it was not tried again. Change the callback URL, or delete the cue.'],
  [/^answered 413/, 'Send a reference to the data instead of the data, or raise the limit of the receiver.'],
  [/^answered 429/, 'The receiver limits its requests. Spread the runs with a window, or raise its limit.'],
  [/^answered 5/, 'The receiver itself failed: look at its response below, and at its logs of that time.']
]

export const adviceFor = (error: string): string | undefined => advice.find(([pattern]) => pattern.test(error))?.[1]
