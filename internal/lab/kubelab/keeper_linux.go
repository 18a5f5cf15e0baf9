package kubelab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// verb is the first argument with which a test binary is executed as a part of a cluster.
const verb = "__kubelab"

const (
	partKeeper = "keeper"
	partNode   = "node"
)

// part is the program behind verb.
func part(args []string) int {
	err := errors.New("parts of clusters are not started by hand")
	switch {
	case len(args) == 2 && args[0] == partKeeper:
		err = runKeeper(args[1])
	case len(args) == 3 && args[0] == partNode:
		err = runNode(args[1], args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// keeper is the first process of a cluster.
type keeper struct {
	*description
	replies *os.File
	began   time.Time
	mu      sync.Mutex
	nodes   map[string]*power
	running []*exec.Cmd
}

func runKeeper(dir string) error {
	for _, fd := range []int{repliesFile, outsideFile, aliveFile} {
		unix.CloseOnExec(fd)
	}
	d, err := load(dir)
	if err != nil {
		return err
	}
	k := &keeper{description: d, replies: os.NewFile(repliesFile, "replies"), began: time.Now(), nodes: map[string]*power{}}
	ctx, cancel := context.WithCancel(context.Background())
	orders := make(chan order)
	go func() { // the end of the test's process closes the pipe
		defer cancel()
		defer close(orders)
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			var o order
			if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			orders <- o
		}
	}()
	k.answer(k.connect())
	k.answer(k.serve(ctx))
	for o := range orders {
		k.answer(k.obey(ctx, o))
	}
	return k.end()
}

func (k *keeper) answer(err error) {
	r := reply{}
	if err != nil {
		r.Fault = err.Error()
	}
	text, _ := json.Marshal(r)                 // a string
	_, _ = k.replies.Write(append(text, '\n')) // the reader is gone
}

// connect separates mounts and makes the network.
func (k *keeper) connect() error {
	if err := privateMounts(); err != nil {
		return err
	}
	outside := os.NewFile(outsideFile, "network")
	return errors.Join(buildSwitch(k.description, outside), outside.Close())
}

// privateMounts separates a new mount namespace from its parent, and shows the processes of the new PID namespace. /sys stays that of
// the machine, because control groups are mounted below.
func privateMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

func mount(source, where, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, where, kind, flags, data); err != nil {
		return fmt.Errorf("mount on %s: %w", where, err)
	}
	return nil
}

// serve starts the control plane and all nodes.
func (k *keeper) serve(ctx context.Context) error {
	if err := makeGroup(groupName(k.ID)); err != nil {
		return err
	}
	if err := furnish(k.description); err != nil {
		return err
	}
	if err := k.startControlPlane(ctx); err != nil {
		return err
	}
	if len(k.Nodes) > 0 {
		if _, err := writeArchive(k.file("images"), busybox(), map[string]string{"/bin/busybox": k.Programs.Busybox}); err != nil {
			return err
		}
	}
	faults := make(chan error, len(k.Nodes))
	for _, n := range k.Nodes {
		go func() { faults <- k.powerOn(ctx, n.Name) }()
	}
	var err error
	for range k.Nodes {
		err = errors.Join(err, <-faults)
	}
	return err
}

func (k *keeper) obey(ctx context.Context, o order) error {
	switch o.Do {
	case orderOff:
		return k.powerOff(o.Node)
	case orderOn:
		return k.powerOn(ctx, o.Node)
	case orderImport:
		return k.importImage(ctx, o.Path)
	}
	return fmt.Errorf("unknown order %q", o.Do)
}

// log writes how far the cluster is, and after what time.
func (k *keeper) log(what string) {
	fmt.Fprintf(os.Stderr, "%s after %v\n", what, time.Since(k.began).Round(time.Millisecond))
}

// start starts a program that runs as long as the cluster, with a log of its own.
func (k *keeper) start(log string, argv ...string) error {
	f, err := os.OpenFile(filepath.Join(k.Dir, log+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", environment(), f, f
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", log, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running = append(k.running, cmd)
	return nil
}

// end kills every process of the cluster and removes what is left of it.
func (k *keeper) end() error {
	_ = unix.Kill(-1, unix.SIGKILL) // all processes of this PID namespace but this one
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			break
		}
	}
	if port, err := netlink.LinkByName(portal); err == nil { // otherwise the kernel takes it later
		_ = netlink.LinkDel(port)
	}
	_ = unix.Unmount(filepath.Join(k.Dir, "etcd"), unix.MNT_DETACH) // it may not have come to that
	return removeRemains(k.Dir)
}

// waitFor calls done until it succeeds.
func waitFor(ctx context.Context, what string, done func() error) error {
	const pause = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, upTimeLimit)
	defer cancel()
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}
