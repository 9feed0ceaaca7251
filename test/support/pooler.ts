import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import pg from 'pg'
import type { Test } from 'tap'

/**
 * The relevant part of PgBouncer: clients share server connections. In transaction mode a client gets one with its
 * first message and returns it when the server is ready outside a transaction; in session mode it keeps it until it disconnects.
 * @returns the URL of the database through the pooler
 */
export const startPooler = async (t: Test, databaseUrl: string, mode: 'transaction' | 'session') => {
  const idle: Socket[] = []
  const all: (pg.Client | Socket)[] = []

  const openServer = async () => {
    const client = new pg.Client({ connectionString: databaseUrl })
    client.on('error', () => {})
    await client.connect()
    const { stream } = client.connection
    stream.removeAllListeners('data') // the protocol's first part is done; from here on bytes pass through
    all.push(stream as Socket)
    return stream as Socket
  }

  const listener = createServer(client => {
    let server: Promise<Socket> | undefined
    const release = async () => {
      const socket = await server
      if (socket) idle.push(socket.removeAllListeners('data'))
      server = undefined
    }
    const take = async () => {
      const socket = idle.pop() ?? (await openServer())
      socket.on('data', data => {
        client.write(data)
        if (mode === 'transaction' && data.subarray(-6).equals(Buffer.from('Z\0\0\0\x05I', 'latin1'))) release()
      })
      return socket
    }
    all.push(client)
    client.on('error', () => {})
    client.on('close', async () => (await server)?.destroy()) // not given to others in the state it is in
    client.once('data', () => {
      client.write(greeting)
      client.on('data', async data => {
        if (data[0] === 'X'.charCodeAt(0)) return client.end()
        server ??= take()
        ;(await server).write(data)
      })
    })
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => {
    listener.close()
    for (const socket of all as Socket[]) socket.destroy()
  })
  return Object.assign(new URL(databaseUrl), { port: String((listener.address() as AddressInfo).port) }).href
}

// Authenticated; the key data of a process that does not exist; ready.
const greeting = Buffer.from('R\0\0\0\x08\0\0\0\0' + 'K\0\0\0\x0c\x7f\0\0\x01\0\0\0\0' + 'Z\0\0\0\x05I', 'latin1')
