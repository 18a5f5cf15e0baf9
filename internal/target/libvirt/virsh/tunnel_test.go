package virsh

import (
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/sshlink"
)

// What a URI says reaches ssh as options, and nothing of it in another place.
func TestTunnelOfURI(t *testing.T) {
	t.Parallel()
	type parts struct {
		host    sshlink.Host
		options []string
		sockets []string
		path    string
	}
	for text, want := range map[string]parts{
		"qemu+ssh://root@host-1:2222/system": {
			host:    sshlink.Host{Name: "root@host-1:2222", User: "root", Address: "host-1", Port: 2222},
			sockets: systemSockets, path: "/system",
		},
		"qemu+ssh://[fd00::1]/system?socket=/run/a": {
			host: sshlink.Host{Name: "[fd00::1]", Address: "fd00::1"}, sockets: []string{"/run/a"}, path: "/system",
		},
		"qemu+ssh://h/session?socket=/run/user/1000/libvirt/libvirt-sock&keyfile=/k&known_hosts=/known": {
			host: sshlink.Host{Name: "h", Address: "h"}, sockets: []string{"/run/user/1000/libvirt/libvirt-sock"}, path: "/session",
			options: []string{
				"IdentityFile=/k", "IdentitiesOnly=yes", "UserKnownHostsFile=/known", "GlobalKnownHostsFile=none",
				"StrictHostKeyChecking=yes", "UpdateHostKeys=no",
			},
		},
	} {
		uri, err := checkURI(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := newTunnel(uri, nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got.host != want.host || !slices.Equal(got.options, want.options) || !slices.Equal(got.sockets, want.sockets) || got.path != want.path {
			t.Errorf("%s: host %+v, options %q, sockets %q, path %q", text, got.host, got.options, got.sockets, got.path)
		}
	}
	for _, text := range []string{
		"qemu+ssh://h/session", "qemu+ssh://h/system?keyfile=/%25h", "qemu+ssh://h/system?known_hosts=/a%20/b", "qemu+ssh://h/system?socket=/a:22",
		"qemu+ssh://h/system?keyfile=/a%22b", "qemu+ssh://h/system?keyfile=/$HOME/k", "qemu+ssh://h/system?socket=/a%0ab", "qemu+ssh://h:99999/system",
	} {
		uri, err := checkURI(text)
		if err != nil {
			continue
		}
		if got, err := newTunnel(uri, nil); err == nil {
			t.Errorf("%s is taken: options %q, sockets %q", text, got.options, got.sockets)
		}
	}
	for _, text := range []string{"qemu:///system", "qemu+tls://h/system", "qemu+unix:///system?socket=/a"} {
		if got, err := newTunnel(text, nil); got != nil || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// No part of a URI reaches ssh as an option or is expanded by it.
func FuzzTunnel(f *testing.F) {
	for _, text := range []string{
		"qemu+ssh://root@host/system?keyfile=/k&known_hosts=/h&socket=/s", "qemu+ssh://[fe80::1%25eth0]:22/system", "qemu+ssh://-x/system",
		"qemu+ssh://h/system?socket=/a:b", "qemu:///system", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		uri, err := checkURI(text)
		if err != nil {
			return
		}
		tunnel, err := newTunnel(uri, nil)
		if err != nil || tunnel == nil {
			return
		}
		if strings.HasPrefix(tunnel.host.Address, "-") || strings.HasPrefix(tunnel.host.User, "-") {
			t.Errorf("%q: host %+v", text, tunnel.host)
		}
		for _, word := range slices.Concat(tunnel.options, tunnel.sockets) {
			if strings.ContainsAny(word, " \t\r\n\"'%$~\\:") {
				t.Errorf("%q: %q", text, word)
			}
		}
	})
}
