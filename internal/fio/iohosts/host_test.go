package iohosts

import (
	"errors"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/sshlink"
)

func TestParseHosts(t *testing.T) {
	files := map[string]string{"list": "# the lab\nnode1, node2:2222 # two\r\n\n  root@[fe80::1%eth0]:22\n"}
	read := func(name string) (string, error) {
		text, ok := files[name]
		if !ok {
			return "", errors.New("no such file")
		}
		return text, nil
	}
	got, err := ParseHosts([]string{"a,admin@b:2022", "@list", "[::1], 10.0.0.7"}, read)
	want := []sshlink.Host{
		{Name: "a", User: "", Address: "a", Port: 0}, {Name: "admin@b:2022", User: "admin", Address: "b", Port: 2022}, {Name: "node1", User: "", Address: "node1", Port: 0}, {Name: "node2:2222", User: "", Address: "node2", Port: 2222},
		{Name: "root@[fe80::1%eth0]:22", User: "root", Address: "fe80::1%eth0", Port: 22}, {Name: "[::1]", User: "", Address: "::1", Port: 0}, {Name: "10.0.0.7", User: "", Address: "10.0.0.7", Port: 0},
	}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %+v", err, got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("host %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if names := fileName(got[4]) + " " + fileName(got[1]); names != "fe80__1_eth0-22 b-2022" {
		t.Errorf("names for files %q", names)
	}
}

// Text that could be an option of ssh or a part of a command is not accepted as a host.
func TestHostileHosts(t *testing.T) {
	for _, text := range []string{
		"-oProxyCommand=touch${IFS}pwned", "a b", "a'b", `a"b`, "a;b", "a|b", "$(id)", "`id`", "a\nb", "a\x00b", "-l@a", "root@-oProxyCommand=x",
		"-oProxyCommand=x@a", "a@b@-c", "a:", "a:0", "a:65536", "a:+22", "a:22x", "[a]", "[::1", "[::1]x", "[::1]:", "a/b", "a\\b", "é", "..;", "@@",
		"a@", "[fe80::1%$(id)]", "[fe80::1%a b]", "::1", "a%b",
	} {
		if hosts, err := ParseHosts([]string{" " + text}, nil); err == nil {
			t.Errorf("%q is read as %+v", text, hosts)
		}
	}
	for _, list := range [][]string{{""}, {","}, {"a,a"}, {"a:22,root@a:22"}, {"@nowhere"}, {strings.Repeat("h,", 300)}} {
		if hosts, err := ParseHosts(list, func(string) (string, error) { return "", errors.New("no such file") }); err == nil {
			t.Errorf("%q is read as %+v", list, hosts)
		}
	}
}

// FuzzParseHosts: what is read as a host is nothing else to ssh.
func FuzzParseHosts(f *testing.F) {
	for _, seed := range []string{
		"a", "a,b", "root@a:22", "[::1]:22", "[fe80::1%eth0]", "-oProxyCommand=x", "a b", "a@b@c", "@list", "a#b\nc,d", ",", "é", "[", "]", "a:",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, list := range [][]string{{text}, {"@file"}} {
			hosts, err := ParseHosts(list, func(string) (string, error) { return text, nil })
			if err != nil {
				continue
			}
			for _, h := range hosts {
				for _, word := range []string{h.Address, h.User} {
					if strings.HasPrefix(word, "-") || strings.ContainsAny(word, " \t\r\n'\"\\`$;&|<>(){}*?!#/,\x00") {
						t.Errorf("%q is read as host %+v", text, h)
					}
				}
				if h.Address == "" || h.Port < 0 || h.Port > 65535 || strings.ContainsAny(fileName(h), ":/ %") {
					t.Errorf("%q is read as host %+v", text, h)
				}
			}
		}
	})
}
