// Package archtest holds no code: its tests keep the import table of docs/ARCHITECTURE.md and the house rules.
package archtest
