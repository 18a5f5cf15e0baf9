// Package iohosts runs job files on several hosts at once, and makes one report of what they did.
//
//	hosts ──ssh──▶ bragg on each ──▶ clocks compared ──▶ jobs prepared everywhere ──▶ one start ──▶ reports ──▶ Clients
//
// The controller (Run) has package rpc start the system's ssh for each host, find this very build there or send it, and carry
// requests and messages over ssh's standard input and output; no port is opened and nothing stays behind. The host's half (Serve)
// is package iojob with a start that the controller names. When the connection ends, so does the load.
//
// What to read: controller.go is the course of a run, serve.go the host's half; session.go one connection, message.go what is
// said. Agents have another protocol; docs/decisions/0015-bragg-io-on-hosts.md says why. How clocks are compared is in package
// clock. It renders nothing: see fioreport.Clients.
package iohosts

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/fio/fioreport"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/sshlink"
)

// Options say how to run jobs on hosts.
type Options struct {
	Hosts []sshlink.Host
	Jobs  Jobs
	// SSHOptions are handed to ssh with -o: "IdentityFile=…", "ProxyJump=…".
	SSHOptions []string
	// Folder on the hosts is where the program is copied to; "" is their temporary one.
	Folder string
	// Keep leaves the copy in the user's cache folder on the hosts, for the next run.
	Keep bool
	// WithoutFailed goes on without hosts that cannot be reached or prepared.
	WithoutFailed bool
	// Silence is how long a host may be silent before it is given up; 0 is a minute.
	Silence time.Duration

	Version    string // of this program
	Executable string // this program, for hosts of its own platform; for others a build that lies beside it

	// Say receives what happens on the way; may be nil.
	Say func(text string)
	// Watch receives the current report every WatchEvery; may be nil.
	Watch      func(c *fioreport.Clients)
	WatchEvery time.Duration
}

// buildFor returns where the build for hosts of a platform lies.
func (o *Options) buildFor(platform string) (string, error) {
	if platform == runtime.GOOS+"/"+runtime.GOARCH {
		return o.Executable, nil
	}
	path := filepath.Join(filepath.Dir(o.Executable), "bragg-"+strings.ReplaceAll(platform, "/", "-"))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return "", &diag.Error{
		Code: "platform", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("it is %s, and this bragg is %s/%s", platform, runtime.GOOS, runtime.GOARCH),
		Hint: fmt.Sprintf("put a bragg of the same version for it at %s; in a checkout of this version:\nmake bin/bragg-linux-%s",
			path, strings.TrimPrefix(platform, "linux/")),
	}
}
