package session

import (
	"encoding/json"
	"strings"
	"testing"
)

// A secret with quotation marks is found as Ansible prints a command of a shell: quoted by Python, in JSON.
func TestSecretsInCommandsOfShells(t *testing.T) {
	s := &secrets{}
	s.learn(`O'Neil's`)
	for _, written := range []string{`'O'"'"'Neil'"'"'s'`, `'O'\''Neil'\''s'`} {
		line, err := json.Marshal("mysql -p " + written)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{written, string(line)} {
			if got := s.text(text); strings.Contains(got, "Neil") {
				t.Errorf("%s is shown as %s", text, got)
			}
		}
	}
}
