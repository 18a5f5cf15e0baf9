package iohosts

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// Host is a machine that jobs run on, as ssh knows it.
type Host struct {
	Name    string // as the user wrote it: of messages and reports
	User    string // "": ssh's choice
	Address string // a name, an alias of ssh's configuration or an IP address
	Port    int    // 0: ssh's choice
}

// hostsMax bounds how many hosts one run has: each has a process of ssh here.
const hostsMax = 256

// A name that begins with a hyphen would be an option of ssh, and blanks and quotes stand in no host name; so whatever
// reaches ssh is made of these.
var (
	userForm    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$`)
	addressForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

// ParseHosts reads hosts as they stand behind --hosts: [user@]host[:port] with commas between them, and @FILE for a file
// with one or more a line, where # begins a comment. read returns the text of a file.
func ParseHosts(list []string, read func(name string) (string, error)) ([]Host, error) {
	var hosts []Host
	var wrong diag.List
	add := func(pos diag.Position, line string, from int, words string) {
		for word := range strings.SplitSeq(words, ",") {
			trimmed := strings.TrimSpace(word)
			pos.Column = from + strings.Index(word, trimmed) + 1
			from += len(word) + 1
			if trimmed == "" {
				continue
			}
			h, err := parseHost(trimmed)
			if err != nil {
				wrong.Add(diag.Diagnostic{
					Code: "bad-host", Pos: pos, Width: len(trimmed), Source: line, Message: err.Error(),
					Hint: "a host is [user@]host[:port], an IPv6 address stands in brackets",
				})
				continue
			}
			hosts = append(hosts, h)
		}
	}
	for _, words := range list {
		name, isFile := strings.CutPrefix(words, "@")
		if !isFile {
			add(diag.Position{File: "--hosts", Line: 1}, words, 0, words)
			continue
		}
		text, err := read(name)
		if err != nil {
			return nil, &diag.Error{Code: "hosts-file", Message: fmt.Sprintf("read hosts from %q", name), Err: err, Exit: diag.ExitData}
		}
		number := 0
		for line := range strings.Lines(text) {
			number++
			line = strings.TrimRight(line, "\r\n")
			words, _, _ := strings.Cut(line, "#")
			add(diag.Position{File: name, Line: number}, line, 0, words)
		}
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	return hosts, checkHosts(hosts)
}

func checkHosts(hosts []Host) error {
	seen := map[string]bool{}
	for _, h := range hosts {
		key := net.JoinHostPort(h.Address, strconv.Itoa(h.Port))
		if seen[key] {
			return usage(fmt.Sprintf("host %q is named twice", h.Name), "jobs of one host would fight for the same files: more clones are numjobs=")
		}
		seen[key] = true
	}
	switch {
	case len(hosts) == 0:
		return usage("no host is named", "--hosts=a,b,c or --hosts=@FILE")
	case len(hosts) > hostsMax:
		return usage(fmt.Sprintf("%d hosts, at most %d are run", len(hosts), hostsMax), "")
	}
	return nil
}

func usage(message, hint string) error {
	return &diag.Error{Code: "usage", Message: message, Hint: hint, Exit: diag.ExitUsage}
}

func parseHost(text string) (Host, error) {
	h := Host{Name: text, Address: text}
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		h.User, h.Address = text[:at], text[at+1:]
		if !userForm.MatchString(h.User) {
			return h, fmt.Errorf("%q is no name of a user", h.User)
		}
	}
	port := ""
	if inside, ok := strings.CutPrefix(h.Address, "["); ok {
		address, rest, closed := strings.Cut(inside, "]")
		plain, _, _ := strings.Cut(address, "%")
		if !closed || net.ParseIP(plain) == nil || strings.ContainsAny(address, " '\"\\$`;&|<>/") || rest != "" && rest[0] != ':' {
			return h, fmt.Errorf("%q is no IPv6 address in brackets", h.Address)
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
		return h, fmt.Errorf("%q is no name of a host", h.Address)
	}
	if port != "" {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 || port[0] == '+' {
			return h, fmt.Errorf("%q is no port", port)
		}
		h.Port = n
	}
	return h, nil
}

// tryOut is the command with which a person finds out whether a host can be reached.
func (h Host) tryOut() string {
	words := "ssh -o BatchMode=yes "
	if h.Port != 0 {
		words += "-p " + strconv.Itoa(h.Port) + " "
	}
	if h.User != "" {
		words += "-l " + h.User + " "
	}
	return words + h.Address + " true"
}

// PortNumber is what documents say, ssh's default where none was given.
func (h Host) PortNumber() int {
	if h.Port == 0 {
		return 22
	}
	return h.Port
}

// fileName is the host's name as a part of the name of a file.
func (h Host) fileName() string {
	name := h.Address
	if h.Port != 0 {
		name += "-" + strconv.Itoa(h.Port)
	}
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
}
