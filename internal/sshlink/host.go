package sshlink

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/textio"
)

// Host is a machine to connect to, as ssh names it.
type Host struct {
	Name    string // as the user wrote it, for messages and reports
	User    string // "": ssh's default
	Address string // a name, an alias of ssh's configuration or an IP address
	Port    int    // 0: ssh's default
}

// A name that begins with a hyphen would be an option of ssh, and host names contain no blanks or quotes; only these
// characters are passed to ssh.
var (
	userForm    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$`)
	addressForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

// ParseHost reads one host: [user@]host[:port], an IPv6 address in brackets.
func ParseHost(text string) (Host, error) {
	h := Host{Name: text, Address: text}
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		h.User, h.Address = text[:at], text[at+1:]
		if !userForm.MatchString(h.User) {
			return h, fmt.Errorf("invalid user name: %q", h.User)
		}
	}
	port := ""
	if inside, ok := strings.CutPrefix(h.Address, "["); ok {
		address, rest, closed := strings.Cut(inside, "]")
		plain, _, _ := strings.Cut(address, "%")
		if !closed || net.ParseIP(plain) == nil || strings.ContainsAny(address, " '\"\\$`;&|<>/") || rest != "" && rest[0] != ':' {
			return h, fmt.Errorf("invalid IPv6 address in brackets: %q", h.Address)
		}
		h.Address, port = address, rest
		if port = strings.TrimPrefix(port, ":"); rest == ":" {
			return h, fmt.Errorf("%q has no port behind the colon", text)
		}
	} else if address, number, found := strings.Cut(h.Address, ":"); found {
		if h.Address, port = address, number; port == "" {
			return h, fmt.Errorf("%q has no port behind the colon", text)
		}
	}
	if net.ParseIP(strings.SplitN(h.Address, "%", 2)[0]) == nil && !addressForm.MatchString(h.Address) {
		return h, fmt.Errorf("invalid host name: %q", h.Address)
	}
	if port != "" {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 || port[0] == '+' {
			return h, fmt.Errorf("invalid port: %q", port)
		}
		h.Port = n
	}
	return h, nil
}

// TryOut returns the command with which a user can test whether the host can be reached with these options of ssh.
func (h Host) TryOut(options []string) string {
	words := []string{"ssh", "-o", "BatchMode=yes"}
	for _, o := range options {
		words = append(words, "-o", o)
	}
	if h.Port != 0 {
		words = append(words, "-p", strconv.Itoa(h.Port))
	}
	if h.User != "" {
		words = append(words, "-l", h.User)
	}
	return textio.Shell(append(words, h.Address, "true")...)
}

// PortNumber is the port for reports: ssh's default if none was given.
func (h Host) PortNumber() int {
	if h.Port == 0 {
		return 22
	}
	return h.Port
}

// Relay returns the command that connects its input and output to %h:%p from this host, as a ProxyCommand of ssh.
func (h Host) Relay(options []string) string {
	words := []string{"ssh", "-o", "BatchMode=yes", "-o", "ControlPath=none", "-W", "%h:%p"}
	for _, o := range options {
		words = append(words, "-o", strings.ReplaceAll(o, "%", "%%"))
	}
	if h.Port != 0 {
		words = append(words, "-p", strconv.Itoa(h.Port))
	}
	if h.User != "" {
		words = append(words, "-l", h.User)
	}
	return textio.Shell(append(words, "--", h.Address)...)
}
