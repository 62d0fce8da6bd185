import assert from 'node:assert/strict'
import test from 'node:test'
import {
  configKeyProblems,
  dnsLabelProblems,
  dnsSubdomainProblems,
  labelValueProblems,
  pathSegmentProblems,
  portNameProblems,
  qualifiedNameProblems,
} from '../../../apiserver/validation/names.ts'

test('names are judged as the API conventions say', () => {
  const good: readonly (readonly [(text: string) => readonly string[], readonly string[]])[] = [
    [dnsLabelProblems, ['a', 'a-b', '1a', 'a'.repeat(63)]],
    [dnsSubdomainProblems, ['a', 'a.b', '1.2', 'a-b.c', 'a'.repeat(253)]],
    [labelValueProblems, ['', 'a', 'A_b.c-1', 'a'.repeat(63)]],
    [qualifiedNameProblems, ['a', 'A_b', 'example.com/a', 'kubernetes.io/metadata.name']],
    [configKeyProblems, ['a', '.hidden', 'UPPER_case-1']],
    [pathSegmentProblems, ['system:node', 'anything goes']],
    [portNameProblems, ['http', 'a-1', '8080-tcp']],
  ]
  for (const [rule, names] of good) for (const name of names) assert.deepEqual(rule(name), [], `${rule.name} ${name}`)
  const bad: typeof good = [
    [dnsLabelProblems, ['', 'A', '-a', 'a-', 'a.b', 'a'.repeat(64), 'ä']],
    [dnsSubdomainProblems, ['', 'A', '.a', 'a.', 'a..b', 'a_b', 'a'.repeat(254), 'a\n']],
    [labelValueProblems, ['-a', 'a b', 'a/b', 'a'.repeat(64)]],
    [qualifiedNameProblems, ['', '/a', 'a/', 'a/b/c', 'EXAMPLE.com/a', 'a b']],
    [configKeyProblems, ['', '.', '..', '..a', 'a/b']],
    [pathSegmentProblems, ['.', '..', 'a/b', 'a%b']],
    [portNameProblems, ['1', 'a--b', '-a', 'a'.repeat(16), 'A']],
  ]
  for (const [rule, names] of bad) for (const name of names) assert.notDeepEqual(rule(name), [], `${rule.name} ${name}`)
})

test('the texts are the ones clients know', () => {
  assert.deepEqual(dnsLabelProblems('A'), [
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
  ])
  assert.deepEqual(dnsSubdomainProblems('A'), [
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  ])
})

test('a long hostile name is refused by its length, not by backtracking', () => {
  assert.deepEqual(dnsSubdomainProblems('a'.repeat(1_000_000)), ['must be no more than 253 bytes'])
})
