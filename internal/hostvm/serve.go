//go:build linux

package hostvm

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/sshlink/rpc"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/local"
)

// Program has what Serve needs from its process.
type Program struct {
	Version   string
	Arguments []string // after the verb
	In        io.Reader
	Out       io.Writer
	Errors    io.Writer
	// AgentCommand starts the agent's program on this machine; its configuration is appended. It must work after the file
	// of this program was removed.
	AgentCommand []string
}

// Serve serves one connection over In and Out until that ends, and returns the exit code. VMs keep running.
func Serve(ctx context.Context, p Program) int {
	if len(p.Arguments) == 1 && p.Arguments[0] == sshlink.Check {
		return diag.ExitPass // the check was only whether it can be started
	}
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	if len(p.Arguments) == 2 && p.Arguments[0] == keepLease {
		return keep(ctx, p)
	}
	executable, err := os.Executable()
	if err == nil {
		err = sshlink.RemoveOwn(executable, p.Arguments)
	}
	if err != nil {
		fmt.Fprintf(p.Errors, "host: %v\n", err)
		return diag.ExitInternal
	}
	if err := serveConn(ctx, p, rpc.Join(p.In, p.Out)); err != nil {
		fmt.Fprintf(p.Errors, "host: %v\n", err)
		return diag.ExitUnavailable
	}
	return diag.ExitPass
}

// server is the host's half of one connection.
type server struct {
	program Program

	mu      sync.Mutex
	targets map[Place]*local.Target
	meters  map[string]*meter // by node
}

// serveConn serves one connection until it ends (nil) or ctx does.
func serveConn(ctx context.Context, p Program, conn io.ReadWriteCloser) error {
	s := &server{program: p, targets: map[Place]*local.Target{}, meters: map[string]*meter{}}
	return errors.Join(rpc.Serve(ctx, conn, silenceMax, s.serve), s.close())
}

func (s *server) serve(ctx context.Context, request []byte, stream net.Conn) {
	var r Request
	if err := json.Unmarshal(request, &r); err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch r.Operation {
	case OpDial:
		s.dial(ctx, stream, r)
		return
	case OpExport, OpImport:
		s.move(ctx, stream, r)
		return
	}
	// The controller closes the stream when it no longer wants the answer.
	go func() {
		_, _ = stream.Read(make([]byte, 1))
		cancel()
	}()
	reply, err := s.do(ctx, r)
	if err != nil {
		reply = Reply{Error: wire(err)}
	}
	if err := rpc.WriteLine(stream, reply); err != nil {
		return
	}
}

func wire(err error) *diag.Wire {
	var stopped *target.StoppedError
	if errors.As(err, &stopped) {
		return &diag.Wire{Code: codeStopped, Message: stopped.Reason, Exit: diag.ExitUnavailable}
	}
	w := diag.ToWire(err)
	return &w
}

func (s *server) do(ctx context.Context, r Request) (Reply, error) {
	t, dir, err := s.open(r.Place)
	if err != nil {
		return Reply{}, err
	}
	var reply Reply
	switch r.Operation {
	case OpInfo:
		reply.Info, err = s.info(dir)
	case OpCreate:
		reply.VMs, err = t.Create(ctx, r.Tag, r.Specs)
	case OpDelete:
		if err = t.Delete(ctx, r.Tag, r.VMs); err == nil {
			err = t.RemoveFolder()
		}
	case OpOwned:
		reply.VMs, err = t.Owned(ctx, r.Tag)
	case OpPowerOn:
		if len(r.VMs) != 1 || r.Identity == nil {
			return Reply{}, errors.New("power on: want one VM with its identity")
		}
		err = t.PowerOnDetached(ctx, r.Tag, r.VMs[0], *r.Identity)
	case OpPowerOff:
		err = t.PowerOffVMs(ctx, r.Tag, r.VMs)
	case OpClone:
		if len(r.VMs) != 1 {
			return Reply{}, errors.New("clone: want one source")
		}
		reply.VMs, err = t.CloneVM(ctx, r.Tag, r.VMs[0], r.Specs, r.Linked)
	case OpCheck:
		err = t.CheckOwned(r.Tag, r.VMs)
	case OpSnapshot:
		err = t.SnapshotVMs(ctx, r.Tag, r.VMs, r.Name)
	case OpStrangers:
		reply.Strangers, err = strangers(r.Tag)
	case OpOthers:
		if reply.Others, err = t.Others(ctx, r.Tag); err == nil {
			reply.Others, err = withHypervisors(reply.Others)
		}
	case OpSample:
		reply.Samples, err = s.meter(r.Place.NodeID).sample()
	case OpMachine:
		reply.Info = machine(ctx)
	case OpLease, OpUnlease:
		reply.Lease, err = s.lease(ctx, r)
	default:
		err = fmt.Errorf("the host knows no operation %q", r.Operation)
	}
	return reply, err
}

// dial connects the stream with an agent.
func (s *server) dial(ctx context.Context, stream net.Conn, r Request) {
	conn, err := s.connect(ctx, r)
	if err != nil {
		_ = rpc.WriteLine(stream, Reply{Error: wire(err)})
		return
	}
	defer conn.Close()
	if rpc.WriteLine(stream, Reply{}) != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.Close()
	})
	_, _ = io.Copy(stream, conn)
	_ = stream.Close()
	both.Wait()
}

func (s *server) connect(ctx context.Context, r Request) (net.Conn, error) {
	if len(r.VMs) != 1 {
		return nil, errors.New("dial: want one VM")
	}
	t, _, err := s.open(r.Place)
	if err != nil {
		return nil, err
	}
	return t.DialDetached(ctx, r.Tag, r.VMs[0])
}

// move sends or receives the data of a disk.
func (s *server) move(ctx context.Context, stream net.Conn, r Request) {
	t, _, err := s.open(r.Place)
	if err == nil && len(r.VMs) != 1 {
		err = errors.New("move a disk: want one VM")
	}
	if err != nil {
		_ = rpc.WriteLine(stream, Reply{Error: wire(err)})
		return
	}
	if rpc.WriteLine(stream, Reply{}) != nil {
		return
	}
	if r.Operation == OpExport {
		// Without the last piece, the other end knows that the copy is incomplete.
		_ = t.ExportDisk(ctx, r.Tag, r.VMs[0], r.Disk, stream)
		return
	}
	reply := Reply{}
	if err := t.ImportDisk(ctx, r.Tag, r.VMs[0], r.Disk, stream); err != nil {
		reply.Error = wire(err)
	}
	_ = rpc.WriteLine(stream, reply)
}

// open opens the folder for VMs in a place. It creates nothing.
func (s *server) open(p Place) (*local.Target, string, error) {
	dir, err := folderIn(p.Folder, p.NodeID)
	if err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.targets[p]; t != nil {
		return t, dir, nil
	}
	t, err := local.OpenDetached(dir, s.program.AgentCommand, local.Detached{
		Node: target.Node{ID: p.NodeID, Name: p.NodeID}, Address: p.Address,
	})
	if err != nil {
		return nil, "", err
	}
	s.targets[p] = t
	if s.meters[p.NodeID] == nil {
		s.meters[p.NodeID] = newMeter(p.NodeID)
	}
	return t, dir, nil
}

const folderDefault = "/var/tmp"

// folderIn returns Bragg's folder in a folder of the host. Others can write to some of these folders: an existing folder of
// that name is refused unless this user owns it and only this user has access.
func folderIn(parent, node string) (string, error) {
	if parent == "" {
		parent = folderDefault
	}
	refuse := func(why string) (string, error) {
		return "", &diag.Error{
			Code: "host-folder", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("keep VMs in %q: %s", parent, why),
			Hint: "\"pool\" in the target file names a folder of the hosts, for the disks of VMs; it must exist",
		}
	}
	if !filepath.IsAbs(parent) {
		return refuse("the path does not begin with a slash")
	}
	if info, err := os.Stat(parent); err != nil {
		return refuse(errors.Unwrap(err).Error())
	} else if !info.IsDir() {
		return refuse("not a directory")
	}
	// The node is part of the name: hosts may share a file system, and one machine may have several nodes.
	dir := filepath.Join(parent, fmt.Sprintf("bragg-%d-%x", os.Getuid(), sha256.Sum256([]byte(node)))[:len("bragg-")+24])
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return dir, nil
	case err != nil:
		return refuse(err.Error())
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !known || int(owner.Uid) != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return refuse(fmt.Sprintf("%q is there and is not only this user's", dir))
	}
	return dir, nil
}

func (s *server) meter(node string) *meter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meters[node]
}

func (s *server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, t := range s.targets {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}
