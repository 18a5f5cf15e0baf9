// Package iohosts runs job files on several hosts at the same time, and combines their results in one report.
//
//	hosts ──ssh──▶ bragg on each ──▶ clocks compared ──▶ jobs prepared everywhere ──▶ one start ──▶ reports ──▶ Clients
//
// The controller (Run) uses package rpc to start the system's ssh for each host, find this very build there or send it, and
// exchange requests and messages over ssh's standard input and output; no port is opened and no files stay behind. The
// host's half (Serve) is package iojob with a start time from the controller. The load ends with the connection.
//
// Where to start reading: controller.go is the course of a run, serve.go the host's half, session.go one connection,
// message.go the messages. Agents have another protocol; docs/decisions/0015-bragg-io-on-hosts.md has the reasons. Package
// clock compares clocks. This package prints no reports: see fioreport.Clients.
package iohosts

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/sshlink"
)

// Options define how to run jobs on hosts.
type Options struct {
	Hosts []sshlink.Host
	Jobs  Jobs
	// SSHOptions are passed to ssh with -o: "IdentityFile=…", "ProxyJump=…".
	SSHOptions []string
	// Folder is where the program is copied to on the hosts; "" is their temporary folder.
	Folder string
	// Keep leaves the copy in the user's cache folder on the hosts, for the next run.
	Keep bool
	// WithoutFailed continues without hosts that cannot be reached or prepared.
	WithoutFailed bool
	// Silence is how long a host may be silent before it counts as lost; 0 is a minute.
	Silence time.Duration

	Version    string // of this program
	Executable string // this program, for hosts of its own platform; for others, a build in the same folder

	// Say receives progress messages; may be nil.
	Say func(text string)
	// Watch receives the current report every WatchEvery; may be nil.
	Watch      func(c *fioreport.Clients)
	WatchEvery time.Duration
}

// buildFor returns the path of the build for hosts of a platform.
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
