/** Reads a JSON text and writes its canonical form, described in `canonical-json.ts`, in one pass. */
export type JsonFault = 'malformed' | 'too_deep' | 'nul' | 'lone_surrogate' | 'number_too_large'

/** A text is not JSON, or JSON that this service doesn't accept. `position` counts characters from 0. */
export class JsonError extends Error {
  readonly reason: JsonFault
  readonly position: number
  /** The message without the position. */
  readonly what: string

  constructor(reason: JsonFault, position: number, what: string) {
    super(`${what} at character ${position}`)
    this.name = 'JsonError'
    this.what = what
    this.reason = reason
    this.position = position
  }
}

/** Scans a JSON text once. Recursive, so the limit on levels also protects the stack. Methods throw JsonError. */
export class Scanner {
  readonly #text: string
  readonly #levels: number
  readonly #keep: Keep | undefined
  #at = 0
  #blanks = 0

  constructor(text: string, levels: number, keep?: Keep) {
    this.#text = text
    this.#levels = levels
    this.#keep = keep
    if (text.charCodeAt(0) === 0xfeff) this.#at = 1
    this.#skipBlanks()
  }

  /** Whether the text is an object. */
  startsObject(): boolean {
    return this.#unit() === 0x7b
  }

  /** Returns the canonical form of the whole text. */
  whole(): string {
    const text = this.#value(0)
    this.#end()
    return text
  }

  /** Returns the members of a text that is an object, which doesn't count as a level. */
  outermost(): Member[] {
    const members = this.#members(0)
    this.#end()
    return members
  }

  /** Returns the source texts of at most `most` elements of a text that is a list. */
  elements(most: number): string[] {
    const sources: string[] = []
    this.#enter(1)
    if (this.#unit() === 0x5d) return sources
    do {
      const from = this.#at
      this.#value(1)
      sources.push(this.#text.slice(from, this.#at))
      this.#skipBlanks()
    } while (sources.length < most && this.#skip(0x2c))
    return sources
  }

  /** Returns the source text of a member's value. */
  source({ from, to }: Member): string {
    return this.#text.slice(from, to)
  }

  #value(level: number): string {
    switch (this.#unit()) {
      case 0x22:
        return this.#string()
      case 0x7b:
        return join(this.#members(level + 1))
      case 0x5b:
        return this.#array(level + 1)
      case 0x74:
        return this.#word('true')
      case 0x66:
        return this.#word('false')
      case 0x6e:
        return this.#word('null')
      default:
        return this.#number()
    }
  }

  #members(level: number): Member[] {
    this.#enter(level)
    const members: Member[] = []
    if (this.#skip(0x7d)) return members
    let sorted = true
    do {
      if (this.#unit() !== 0x22) this.#expected('a key in quotes')
      const name = this.#string()
      const order = name.includes('\\') ? sortable(JSON.parse(name)) : name.slice(1, -1)
      this.#skipBlanks()
      if (!this.#skip(0x3a)) this.#expected('":"')
      const from = this.#at
      const blanks = this.#blanks
      const member = { name, order, value: this.#value(level), from, to: this.#at, blanks: this.#blanks - blanks }
      if (this.#keep && level <= this.#keep.depth) member.value = this.#keep.member(member, this)
      if (sorted && members.length > 0) sorted = members[members.length - 1]!.order < order
      members.push(member)
      this.#skipBlanks()
    } while (this.#skip(0x2c))
    if (!this.#skip(0x7d)) this.#expected('"," or "}"')
    return sorted ? members : lastOfEach(members)
  }

  #array(level: number): string {
    this.#enter(level)
    if (this.#skip(0x5d)) return '[]'
    let text = '['
    do {
      text += text.length === 1 ? this.#value(level) : `, ${this.#value(level)}`
      this.#skipBlanks()
    } while (this.#skip(0x2c))
    if (!this.#skip(0x5d)) this.#expected('"," or "]"')
    return `${text}]`
  }

  #enter(level: number): void {
    if (level > this.#levels) throw new JsonError('too_deep', this.#at, `nested deeper than ${this.#levels} levels`)
    this.#at++
    this.#skipBlanks()
  }

  #string(): string {
    const from = this.#at
    let plain = true
    for (let unit = this.#next(); unit !== 0x22; unit = this.#next()) {
      if (unit >= 0x20 && unit <= 0x7e && unit !== 0x5c) continue
      plain = false
      if (unit === 0x5c) this.#at++
      else if (!(unit >= 0x20)) this.#expected(unit < 0x20 ? 'an escaped control character' : 'the end of the string')
    }
    this.#at++
    const source = this.#text.slice(from, this.#at)
    if (plain) return source
    const value = this.#unescape(source, from)
    if (value.includes('\0')) throw new JsonError('nul', from, 'a string contains the NUL character')
    if (!value.isWellFormed()) throw new JsonError('lone_surrogate', from, 'a string contains an unpaired surrogate')
    return quote(value)
  }

  #unescape(source: string, from: number): string {
    try {
      return JSON.parse(source) as string
    } catch {
      throw new JsonError('malformed', from, 'invalid escape in a string')
    }
  }

  #number(): string {
    const from = this.#at
    let unit = this.#unit()
    if (unit === 0x2d) unit = this.#next()
    if (unit === 0x30) unit = this.#next()
    else unit = this.#digits(from === this.#at ? 'a value' : 'a digit')
    let whole = true
    if (unit === 0x2e) {
      whole = false
      this.#at++
      unit = this.#digits('a digit')
    }
    if (unit === 0x65 || unit === 0x45) {
      whole = false
      unit = this.#next()
      if (unit === 0x2b || unit === 0x2d) this.#at++
      this.#digits('a digit')
    }
    const literal = this.#text.slice(from, this.#at)
    if (whole) return literal === '-0' ? '0' : literal
    const value = Number(literal)
    if (!Number.isFinite(value)) throw new JsonError('number_too_large', from, 'a number is out of range for a double')
    return float(value)
  }

  #digits(expected: string): number {
    let unit = this.#unit()
    if (!isDigit(unit)) this.#expected(expected)
    while (isDigit(unit)) unit = this.#next()
    return unit
  }

  #word(word: string): string {
    if (!this.#text.startsWith(word, this.#at)) this.#expected('a value')
    this.#at += word.length
    return word
  }

  #unit(): number {
    return this.#text.charCodeAt(this.#at)
  }

  #next(): number {
    return this.#text.charCodeAt(++this.#at)
  }

  #skip(unit: number): boolean {
    if (this.#unit() !== unit) return false
    this.#at++
    this.#skipBlanks()
    return true
  }

  #skipBlanks(): void {
    const from = this.#at
    let unit = this.#unit()
    while (unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09) unit = this.#next()
    this.#blanks += this.#at - from
  }

  #end(): void {
    this.#skipBlanks()
    if (this.#at < this.#text.length) this.#expected('the end')
  }

  #expected(what: string): never {
    const found = this.#at < this.#text.length ? `instead of ${JSON.stringify(this.#text[this.#at])}` : 'but the text ends'
    throw new JsonError('malformed', this.#at, `expected ${what} ${found}`)
  }
}

/** Called for each member of objects no deeper than `depth`; returns the text that replaces its value. */
export interface Keep {
  depth: number
  member: (member: Member, scanner: Scanner) => string
}

/** A member of an object: canonical name and value, its sort key, and where in the source its value was, with the whitespace in it. */
export interface Member {
  name: string
  order: string
  value: string
  from: number
  to: number
  blanks: number
}

/** Writes members as an object. */
export const join = (members: Member[]): string => {
  let text = '{'
  for (const { name, value } of members) text += text.length === 1 ? `${name}: ${value}` : `, ${name}: ${value}`
  return `${text}}`
}

/** Sorts members by code point, and keeps only the last of equal keys. */
export const lastOfEach = (members: Member[]): Member[] => {
  members.sort(byOrder)
  return members.filter(({ order }, i) => order !== members[i + 1]?.order)
}

const byOrder = (a: Member, b: Member): number => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0)

/**
 * Maps a key to a string that JavaScript, which compares UTF-16 units, sorts as the key sorts by code point: surrogates, which encode the highest
 * code points, change places with U+E000 to U+FFFF.
 */
const sortable = (key: string): string =>
  key.replace(/[\ud800-\uffff]/g, unit => String.fromCharCode(unit.charCodeAt(0) + (unit < '\ue000' ? 0x2000 : -0x800)))

const float = (value: number): string => {
  const size = Math.abs(value)
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) return value.toExponential().replace(/(?<=e[+-])\d$/, '0$&')
  if (Number.isInteger(value)) return Object.is(value, -0) ? '-0.0' : `${value}.0`
  return String(value)
}

/** A string as JSON in printable ASCII. Writing bytes is ten times faster than `replace` if most characters are not ASCII. */
export const quote = (value: string): string => {
  const json = JSON.stringify(value)
  const bytes = Buffer.allocUnsafe(json.length * 6)
  let end = 0
  for (let i = 0; i < json.length; i++) {
    const unit = json.charCodeAt(i)
    if (unit >= 0x20 && unit <= 0x7e) {
      bytes[end++] = unit
    } else {
      bytes[end++] = 0x5c
      bytes[end++] = 0x75
      for (let shift = 12; shift >= 0; shift -= 4) bytes[end++] = HEX.charCodeAt((unit >> shift) & 15)
    }
  }
  return bytes.toString('latin1', 0, end)
}

const HEX = '0123456789abcdef'

const isDigit = (unit: number): boolean => unit >= 0x30 && unit <= 0x39
