package virsh

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// transports are the supported ways to a libvirt daemon, each with the parameters that its URI may have. Parameters that run a
// program (command, netcat, proxy) or skip a check (no_verify, known_hosts_verify) are refused.
var transports = map[string][]string{
	"qemu":      {"socket"},
	"qemu+unix": {"socket"},
	"qemu+ssh":  {"keyfile", "known_hosts", "no_tty", "socket"},
	"qemu+tls":  {"pkipath"},
}

// hostText keeps a host or user from being taken for an option by ssh.
var hostText = regexp.MustCompile(`^[A-Za-z0-9_\[][A-Za-z0-9._:%\]-]*$`)

// checkURI returns the connection URI of a node as virsh gets it, or why it is refused.
func checkURI(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", badURI(text, "not a URI")
	}
	known, ok := transports[u.Scheme]
	remote := u.Scheme == "qemu+ssh" || u.Scheme == "qemu+tls"
	_, password := u.User.Password()
	switch {
	case !ok:
		return "", badURI(text, "unknown scheme")
	case password:
		return "", badURI("", "it contains a password")
	case remote != (u.Host != ""):
		return "", badURI(text, "ssh and tls need a host, other transports take none")
	case u.Host != "" && !hostText.MatchString(u.Host), u.User != nil && !hostText.MatchString(u.User.Username()):
		return "", badURI(text, "invalid characters in the host or user")
	case u.Path != "/system" && u.Path != "/session":
		return "", badURI(text, "its path is neither /system nor /session")
	case u.Fragment != "" || u.Opaque != "":
		return "", badURI(text, "a connection has no fragment")
	}
	query := u.Query()
	for key, values := range query {
		if !slices.Contains(known, key) || len(values) != 1 {
			return "", badURI(text, fmt.Sprintf("parameter %q is not accepted", key))
		}
		if key != "no_tty" && !path.IsAbs(values[0]) {
			return "", badURI(text, fmt.Sprintf("parameter %q: not an absolute path", key))
		}
	}
	if u.Scheme == "qemu+ssh" {
		query.Set("no_tty", "1") // ssh has no terminal to ask on
		u.RawQuery = query.Encode()
	}
	return u.String(), nil
}

// badURI leaves out a text that may contain a password.
func badURI(text, why string) error {
	message := fmt.Sprintf("open libvirt connection %q: %s", text, why)
	if text == "" {
		message = "open libvirt connection: " + why
	}
	return &diag.Error{
		Code: "libvirt-uri", Exit: diag.ExitData, Message: message,
		Hint: "write qemu:///system, qemu+ssh://root@host/system or qemu+unix:///system?socket=/path",
	}
}
