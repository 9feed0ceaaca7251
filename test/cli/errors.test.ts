/** Errors printed by the command line. */
import t from 'tap'
import { cliStage } from '../support/cli-stage.ts'

t.test("prints each error once, with the option's name", async t => {
  const { cli } = await cliStage(t)
  const cases: [args: string[], err: string][] = [
    [
      ['cues', 'create', 'x', '--at', 'tomorrow', '--url', 'http://127.0.0.1:9/'],
      'pgcue: --at: Input should be a valid ISO 8601 datetime with Z or an offset\n--url: port 9 is not allowed\n'
    ],
    [['cues', 'create', 'x'.repeat(256), '--cron', '@daily', '--worker'], 'pgcue: NAME: String should have at most 255 characters\n'],
    [['cues', 'create', 'x', '--cron', '@daily'], 'pgcue: --url: Field required\n'],
    [
      ['cues', 'create', 'x', '--cron', '@daily', '--worker', '--data', '{"retry": {"max_attempts": 99}}'],
      'pgcue: retry.max_attempts (in --data): Input should be less than or equal to 10\n'
    ]
  ]
  for (const [args, err] of cases) t.same(await cli(args), { code: 1, out: '', err })
})

t.test('prints several errors on a line each', async t => {
  const { cli } = await cliStage(t)
  const { err } = await cli(['executions', 'list', '--trigger', 'magic', '--since', 'now'])
  t.same(
    err.split('\n').map(line => line.split(': Input')[0]),
    ['pgcue: --trigger', '--since', '']
  )
})

t.test('replaces an API member at the start of a message by its option', async t => {
  const { cli } = await cliStage(t)
  const { err } = await cli(['cues', 'create', 'x', '--cron', '@daily', '--url', 'http://10.0.0.1/'])
  t.match(err, /^pgcue: --url: [^\n]+\n$/)
})

t.test("prints the API's error unchanged with --json", async t => {
  const { cli } = await cliStage(t)
  const { err } = await cli(['cues', 'create', 'x', '--cron', '@daily', '--json'])
  t.same(JSON.parse(err).detail, [{ type: 'missing', loc: ['body', 'callback', 'url'], msg: 'Field required', input: null }])
})
