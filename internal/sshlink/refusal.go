package sshlink

import (
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// Codes of errors that a retry does not fix: the user has to act.
const (
	CodeHostKey = "ssh-host-key"
	CodeRefused = "ssh-refused"
)

// unreached returns why ssh did not reach the host, determined from its output.
func (l *Link) unreached() error {
	try := "this must work without a question: " + l.host.TryOut(l.options)
	printed := l.errors.String()
	e := &diag.Error{Code: "ssh", Message: "ssh cannot reach it", Hint: try, Exit: diag.ExitUnavailable}
	switch {
	case strings.Contains(printed, keyChanged):
		e.Code, e.Message = CodeHostKey, "it shows another key than the one that is known of it"
		e.Hint = "compare that fingerprint with the one at the host (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub); if it is the host's own, " +
			"correct the line of known_hosts"
	case strings.Contains(printed, "Host key verification failed"):
		e.Code, e.Message = CodeHostKey, "host key unknown, and ssh cannot prompt for it"
		e.Hint = "check its fingerprint and write its key into known_hosts; then " + try
	case strings.Contains(printed, "Permission denied"):
		e.Code, e.Message = CodeRefused, "it does not let ssh in with the keys that there are"
		e.Hint = "a key without a passphrase, or one in ssh-agent, that the host has in authorized_keys; " + try
	}
	return e
}

const keyChanged = "REMOTE HOST IDENTIFICATION HAS CHANGED"

// essence is ssh's output without the frame around the message about a changed key.
func essence(printed string) string {
	printed = strings.TrimSpace(strings.ReplaceAll(printed, "\r", ""))
	if !strings.Contains(printed, keyChanged) {
		return printed
	}
	var lines []string
	for line := range strings.Lines(printed) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "SHA256:") || strings.HasPrefix(line, "Offending") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
