// Package archtest holds no code: its tests keep the import table of docs/ARCHITECTURE.md and the house rules. Sizes of packages, files
// and types are not among the rules; `make house` prints them.
package archtest
