package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/sshlink"
)

// tunnel is the way to the libvirt of a host that only ssh reaches: one connection of ssh, which lends libvirt's socket there to
// calls of virsh here. virsh could run ssh by itself. But that would log in for each call, ten times as long as the call and at the
// expense of the host that is measured; sshd refuses some of many who log in at once; and nothing can be told to ssh by that way,
// neither whose key is expected nor how long to wait for a host that is silent.
//
// The connection is made when it is first needed, and anew after it broke. The zero value of what is below mu is a tunnel that is closed.
type tunnel struct {
	host    sshlink.Host
	options []string // of ssh, for -o
	sockets []string // where libvirt may listen there, the likeliest first
	path    string   // of URIs: "/system"
	// try makes a call of virsh that changes nothing.
	try func(ctx context.Context, uri string) error

	mu      sync.Mutex
	ended   bool
	digging *digging // nil: nobody makes a connection
	lent    *lent    // nil: there has been none, or it was dropped
	all     sync.WaitGroup
}

// digging is a connection that is being made, for whoever wants one meanwhile. Its outcome is valid when done is closed.
type digging struct {
	done   chan struct{}
	cancel context.CancelFunc
	uri    string
	err    error
}

// lent is a connection with sockets on this machine.
type lent struct {
	link *sshlink.Link
	dir  string // holds nothing but sockets
	uri  string // of the one that answers
}

// digLimit bounds the making of a connection, libvirt's first answer included.
const digLimit = 20 * time.Second

// errUnreached marks errors of ssh that may pass: a host that is off, or boots.
var errUnreached = errors.New("no way to the host")

// Of a host with one daemon for everything, and with one for each part of libvirt.
var systemSockets = []string{"/run/libvirt/virtqemud-sock", "/run/libvirt/libvirt-sock"}

// plainPath is what ssh reads in no way of its own: it would replace %, $ and ~, and parts paths at blanks and colons.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9_./+@-]*$`)

// newTunnel reads a URI that checkURI returned; nil of one that needs no ssh.
func newTunnel(uri string, run runner) (*tunnel, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "qemu+ssh" {
		return nil, err
	}
	where := u.Host
	if ip := u.Hostname(); strings.Contains(ip, ":") {
		where = "[" + ip + "]"
		if port := u.Port(); port != "" {
			where += ":" + port
		}
	}
	if user := u.User.Username(); user != "" {
		where = user + "@" + where
	}
	host, err := sshlink.ParseHost(where)
	if err != nil {
		return nil, badURI(uri, err.Error())
	}
	t := &tunnel{host: host, path: u.Path, sockets: systemSockets}
	query := u.Query()
	for key, values := range query {
		if key != "no_tty" && !plainPath.MatchString(values[0]) {
			return nil, badURI(uri, fmt.Sprintf("parameter %q has letters that ssh does not take literally", key))
		}
	}
	if file := query.Get("keyfile"); file != "" {
		t.options = append(t.options, "IdentityFile="+file, "IdentitiesOnly=yes")
	}
	if file := query.Get("known_hosts"); file != "" {
		t.options = append(t.options, "UserKnownHostsFile="+file, "GlobalKnownHostsFile=none", "StrictHostKeyChecking=yes", "UpdateHostKeys=no")
	}
	if socket := query.Get("socket"); socket != "" {
		t.sockets = []string{socket}
	} else if t.path != "/system" {
		return nil, badURI(uri, "over ssh, where the daemon of a user listens must be said: socket=/run/user/1000/libvirt/libvirt-sock")
	}
	t.try = func(ctx context.Context, uri string) error {
		_, err := run(ctx, call{uri: uri, args: []string{"uri"}, limit: digLimit})
		return err
	}
	return t, nil
}

// reach returns the URI by which virsh reaches the host now.
func (t *tunnel) reach(ctx context.Context) (string, error) {
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		return "", errClosed
	}
	if t.lent.lives() {
		defer t.mu.Unlock()
		return t.lent.uri, nil
	}
	d := t.digging
	if d == nil {
		// Others wait for it too: that the first of them gives up is no reason to end it.
		bounded, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), digLimit, errTimedOut)
		d = &digging{done: make(chan struct{}), cancel: cancel}
		t.digging = d
		t.all.Go(func() { t.make(bounded, d) })
	}
	t.mu.Unlock()
	select {
	case <-d.done:
		return d.uri, d.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (t *tunnel) make(ctx context.Context, d *digging) {
	defer close(d.done)
	defer d.cancel()
	made, err := t.dig(ctx)
	t.mu.Lock()
	t.digging = nil
	before := t.lent
	t.lent = made
	if t.ended && made != nil {
		before, t.lent, err = made, nil, errClosed
	}
	t.mu.Unlock()
	before.fill()
	if d.err = err; err == nil {
		d.uri = made.uri
	}
}

// dig makes a connection, and finds out which of the host's sockets answers.
func (t *tunnel) dig(ctx context.Context) (*lent, error) {
	dir, err := socketFolder()
	if err != nil {
		return nil, fmt.Errorf("reach host %q: %w", t.host.Name, err)
	}
	made := &lent{dir: dir}
	f := &sshlink.Forwarding{Options: t.options}
	for i, s := range t.sockets {
		f.Sockets = append(f.Sockets, [2]string{made.socket(i), s})
	}
	if made.link, err = sshlink.Forward(ctx, t.host, f); err != nil {
		made.fill()
		return nil, passing(err)
	}
	var errs []error
	for i := range t.sockets {
		uri := "qemu+unix://" + t.path + "?socket=" + made.socket(i)
		if err = t.try(ctx, uri); err == nil {
			made.uri = uri
			return made, nil
		}
		if errors.Is(err, exec.ErrNotFound) {
			made.fill()
			return nil, err // virsh is missing here
		}
		errs = append(errs, err)
	}
	err = t.unanswered(errs)
	made.fill()
	return nil, passing(err)
}

// passing marks an error of ssh after which another attempt may succeed.
func passing(err error) error {
	var told *diag.Error
	if errors.As(err, &told) && (told.Code == sshlink.CodeHostKey || told.Code == sshlink.CodeRefused || told.Code == "no-ssh") {
		return err
	}
	return &unreached{err}
}

// unreached is an error with the mark of errUnreached, and its own words.
type unreached struct{ err error }

func (u *unreached) Error() string   { return u.err.Error() }
func (u *unreached) Unwrap() []error { return []error{u.err, errUnreached} }

// unanswered is why no libvirt answers although ssh is let in. sshd gives one answer to whatever keeps it from a socket.
func (t *tunnel) unanswered(errs []error) error {
	return &diag.Error{
		Code: "libvirt-ssh-socket", Exit: diag.ExitUnavailable, Err: errs[len(errs)-1],
		Message: fmt.Sprintf("host %q: ssh is let in, and no libvirt answers at %s", t.host.Name, strings.Join(t.sockets, " or ")),
		Hint: "libvirtd or virtqemud runs there, and socket=PATH in the connection says where it listens if that is elsewhere; " +
			"the user may use that socket; sshd lets it through (AllowStreamLocalForwarding)",
	}
}

// drop ends the connection: the host has lost its power, which a network does not tell.
func (t *tunnel) drop() {
	if t == nil {
		return
	}
	t.mu.Lock()
	gone := t.lent
	t.lent = nil
	t.mu.Unlock()
	gone.fill()
}

// close ends the connection for good, and waits for what is being made.
func (t *tunnel) close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.ended = true
	if t.digging != nil {
		t.digging.cancel()
	}
	t.mu.Unlock()
	t.all.Wait()
	t.drop()
}

func (l *lent) lives() bool {
	if l == nil {
		return false
	}
	select {
	case <-l.link.Gone():
		return false
	default:
		return true
	}
}

func (l *lent) socket(i int) string { return filepath.Join(l.dir, fmt.Sprint(i)) }

// fill ends ssh and removes its sockets.
func (l *lent) fill() {
	if l == nil {
		return
	}
	if l.link != nil {
		l.link.HangUp(sshlink.HangUpMax)
	}
	_ = os.RemoveAll(l.dir) // it is this one's alone
}

// socketFolders are named for what is in them. A path of a socket has at most 107 bytes (unix(7)).
const (
	socketFolderPrefix   = "bragg-tunnel-"
	socketParentBytesMax = 64
)

// socketFolder makes a folder for sockets, where only this user looks in.
func socketFolder() (string, error) {
	var errs []error
	for _, parent := range slices.Compact([]string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"}) {
		if len(parent) > socketParentBytesMax || !plainPath.MatchString(parent) {
			continue
		}
		if _, done := swept.LoadOrStore(parent, true); !done {
			sweepSockets(parent)
		}
		dir, err := os.MkdirTemp(parent, socketFolderPrefix)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("make a folder for sockets: %w", errors.Join(errs...))
}
