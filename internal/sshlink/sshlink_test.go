package sshlink

import (
	"path/filepath"
	"strings"
	"testing"
)

// The command of ssh is one text, whatever the host.
func TestCommandIsFixed(t *testing.T) {
	r := &Remote{Program: "bragg-test", Verb: testVerb, Options: []string{"ProxyJump=x"}}
	for _, h := range []Host{{"a", "", "a", 0}, {"u@b:2", "u", "b", 2}} {
		args := arguments(h, r)
		n := len(args)
		if args[n-1] != r.command() || args[n-2] != h.Address || args[n-3] != "--" {
			t.Errorf("arguments %q", args)
		}
	}
	if strings.ContainsAny(scriptText, "'\\!\n") {
		t.Error("the script has characters that some login shell reads in another way")
	}
}

// The error for an unreachable host names the command that must work.
func TestUnreachable(t *testing.T) {
	r := ownProgram(t)
	r.Options = []string{"ConnectTimeout=2"}
	_, err := Start(t.Context(), Host{Name: "nowhere", Address: "127.0.0.1", Port: 1}, r)
	if err == nil || !strings.Contains(err.Error(), `host "nowhere"`) {
		t.Errorf("got %v", err)
	}
}

// Only the directory that the program was copied to is ever removed.
func TestOnlyTheOwnFolderIsRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{dir, "/", "", filepath.Join(dir, "bragg.x")} {
		if err := RemoveOwn(filepath.Join(dir, "bragg"), []string{folder}); err == nil {
			t.Errorf("%q is taken for the program's own folder", folder)
		}
	}
	if err := RemoveOwn("/nowhere/bragg", nil); err != nil {
		t.Error(err)
	}
}

// A relay is one command for the shell that ssh starts, with the options of its host.
func TestRelay(t *testing.T) {
	h, err := ParseHost("root@10.0.0.11:2222")
	if err != nil {
		t.Fatal(err)
	}
	want := "ssh -o BatchMode=yes -o ControlPath=none -W %h:%p -o IdentityFile=/etc/bragg/key%%1 -o 'ProxyJump=a b' -p 2222 -l root -- 10.0.0.11"
	if got := h.Relay([]string{"IdentityFile=/etc/bragg/key%1", "ProxyJump=a b"}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
