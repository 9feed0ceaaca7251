/** What `pgcue apply --example` prints: a file that applies, with what people set most. */
export const example = `# Apply it with:  pgcue apply -f cues.yaml --dry-run   (then without --dry-run)
# Cues of a set that are no longer in its files are deleted with --prune.
set: example

cues:
  # A webhook at 9:00 on weekdays, in local time.
  - key: example/report          # your own name; applying the file again changes this cue
    name: Daily report
    tags: [reports]
    schedule:
      cron: 0 9 * * MON-FRI      # or crons: [...], every: 36h, at: 2099-01-15T09:00:00Z
      timezone: Europe/London
      exclude: [{ dates: [12-25, 12-26] }]
    callback:
      url: https://example.com/hooks/report
      headers: { X-Team: reports }   # secrets come from the environment: "Bearer $\${REPORT_TOKEN}" without the first $
    payload: { rows: 100 }
    retry: { max_attempts: 5, backoff_minutes: [1, 5, 30] }
    delivery: { timeout_seconds: 60 }
    overlap: skip                # do not start while the last run is still running
    on_failure: { email: true, pause_after: 20 }

  # A job for workers: pgcue worker --handler 'backup=./backup.sh'
  - key: example/backup
    name: Nightly backup
    schedule: { cron: "*/30 1-4 * * *", max_runs: 1000 }   # quote values that begin with *
    worker: true
    payload: { task: backup, keep: 7 }
    catch_up: skip_missed        # what was missed while the service was down stays missed
    verification: { mode: require_external_id }

  # A job that runs after another one, once that is verified; it needs no schedule.
  - key: example/restore
    name: Restore the backup elsewhere
    after: { cues: [example/backup], when: verified, within: 6h }
    worker: true
    payload: { task: restore }
`
