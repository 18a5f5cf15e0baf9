package iohosts

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/sshlink"
)

// hostsMax bounds the number of hosts of one run: each has an ssh process on this machine.
const hostsMax = 256

// ParseHosts reads values of --hosts: [user@]host[:port] with commas between them, and @FILE for a file with one or more
// per line, where # begins a comment. read returns the text of a file.
func ParseHosts(list []string, read func(name string) (string, error)) ([]sshlink.Host, error) {
	var hosts []sshlink.Host
	var wrong diag.List
	add := func(pos diag.Position, line string, from int, words string) {
		for word := range strings.SplitSeq(words, ",") {
			trimmed := strings.TrimSpace(word)
			pos.Column = from + strings.Index(word, trimmed) + 1
			from += len(word) + 1
			if trimmed == "" {
				continue
			}
			h, err := sshlink.ParseHost(trimmed)
			if err != nil {
				wrong.Add(diag.Diagnostic{
					Code: "bad-host", Pos: pos, Width: len(trimmed), Source: line, Message: err.Error(),
					Hint: "a host is [user@]host[:port], an IPv6 address is in brackets",
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

func checkHosts(hosts []sshlink.Host) error {
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

// fileName returns a host's name in a form for file names.
func fileName(h sshlink.Host) string {
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
