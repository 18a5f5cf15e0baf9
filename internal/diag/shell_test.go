package diag_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/diag"
)

func TestShellLine(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"":                         nil,
		"ssh -o IdentityFile=/a h": {"ssh", "-o", "IdentityFile=/a", "h"},
		`fio '--name=a b' '' 'it'\''s' '$(x)' 'ä'`: {"fio", "--name=a b", "", "it's", "$(x)", "ä"},
	} {
		if got := diag.ShellLine(words...); got != want {
			t.Errorf("%q: got %s, want %s", words, got, want)
		}
	}
}
