package sshlink

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/testreq"
)

// A forwarded socket exists until the link is hung up or the process that made it exits: ssh ends with its input.
func TestForward(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a server of ssh")
	}
	server := testreq.SSHD(t, 1)
	h, err := ParseHost(server.Hosts()[0])
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(server.Folder, "there")
	listener, err := net.Listen("unix", there)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go answer(listener)
	for _, c := range []struct {
		name string
		end  func(l *Link)
	}{
		{"hung up", func(l *Link) { l.HangUp(tooLong) }},
		{"its user is gone", func(l *Link) { _ = l.in.Close() }},
		{"the host is gone", func(*Link) { server.Break(0) }},
		{"a silent host is hung up", func(l *Link) {
			for _, id := range server.Sessions(0) {
				_ = syscall.Kill(id, syscall.SIGSTOP)
				defer func() { _ = syscall.Kill(id, syscall.SIGCONT) }()
			}
			l.HangUp(tooLong)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			here := filepath.Join(server.Folder, "here")
			_ = os.Remove(here)
			l, err := Forward(t.Context(), h, &Forwarding{Sockets: [][2]string{{here, there}}, Options: server.Options})
			if err != nil {
				t.Fatal(err)
			}
			defer l.HangUp(HangUpMax)
			conn, err := net.Dial("unix", here)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintln(conn, "hello"); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "you said hello\n" {
				t.Errorf("%q, %v", line, err)
			}
			if info, err := os.Stat(here); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("others may use it: %v, %v", info, err)
			}
			_ = conn.Close()
			c.end(l)
			within(t, "ssh goes on", func() bool {
				select {
				case <-l.Gone():
					return true
				default:
					return false
				}
			})
		})
	}
}

func answer(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
			_, _ = fmt.Fprintf(conn, "you said %s", line)
		}
		_ = conn.Close()
	}
}

// What ssh prints becomes one line that says what is wrong, without its frame.
func TestEssence(t *testing.T) {
	t.Parallel()
	frame := strings.Repeat("@", 59)
	changed := frame + "\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n" + frame + "\r\nIT IS POSSIBLE …\r\n" +
		"The fingerprint for the ED25519 key sent by the remote host is\r\nSHA256:abc.\r\nOffending ED25519 key in /k:1\r\nHost key verification failed.\r\n"
	for printed, want := range map[string]string{
		changed: "SHA256:abc.\nOffending ED25519 key in /k:1", "": "", "a\r\nb\r\n": "a\nb",
	} {
		if got := essence(printed); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for printed, want := range map[string]string{
		changed: CodeHostKey, "Host key verification failed.": CodeHostKey, "root@h: Permission denied (publickey).": CodeRefused,
		"ssh: connect to host h port 22: Connection refused": "ssh",
	} {
		l := newLink(Host{Name: "h", Address: "h"}, []string{"IdentityFile=/a b"}, nil)
		_, _ = l.errors.Write([]byte(printed))
		err := l.Error(l.unreached())
		var userErr *diag.Error
		if !errors.As(err, &userErr) || userErr.Code != want || userErr.Hint == "" {
			t.Errorf("%q: got %v", printed, err)
		}
	}
	if got := (Host{Address: "h"}).TryOut([]string{"IdentityFile=/a b'"}); got != `ssh -o BatchMode=yes -o 'IdentityFile=/a b'\''' h true` {
		t.Errorf("got %s", got)
	}
}
