package kubelab

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	upTimeLimit  = 5 * time.Minute // only guards against hanging
	endTimeLimit = 2 * time.Minute
	machineLock  = "/run/bragg-kubelab.lock" // held while a cluster chooses its network, and while remains are removed
)

// Folder is where all clusters of this machine lie.
func Folder() string { return filepath.Join(os.TempDir(), "bragg-kubelab") }

// programs are the paths of programs that parts of a cluster start.
type programs struct {
	Kube, Etcd, Nsenter, Containerd, Busybox string
}

// description is what the keeper and nodes know of their cluster.
type description struct {
	ID        string
	Dir       string
	Subnet    netip.Prefix
	Interface string // of the machine in the cluster's network
	Nodes     []Node
	Simulated int
	// Housekeeping is that of Options.
	Housekeeping time.Duration
	Programs     programs
}

const descriptionFile = "cluster.json"

func load(dir string) (*description, error) {
	text, err := os.ReadFile(filepath.Join(dir, descriptionFile))
	if err != nil {
		return nil, err
	}
	d := &description{}
	return d, json.Unmarshal(text, d)
}

// up makes a cluster. It fails with all logs.
func up(ctx context.Context, o Options, p programs) (c *Cluster, err error) {
	unlock, err := lock(machineLock)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := sweep(); err != nil {
		return nil, err
	}
	d, err := describe(o, p)
	if err != nil {
		return nil, err
	}
	k, err := startKeeper(d)
	if err != nil {
		return nil, errors.Join(err, removeRemains(d.Dir))
	}
	stop := context.AfterFunc(ctx, func() { _ = k.replies.SetReadDeadline(time.Now()) })
	defer stop()
	// The network is taken once the keeper has connected it; others may choose theirs from then on.
	err = k.await()
	if err == nil {
		err = unlock()
	}
	if err == nil {
		err = k.await()
	}
	if err != nil {
		words := lastWords(d.Dir)
		return nil, errors.Join(fmt.Errorf("make a cluster: %w\n%s", err, words), k.end())
	}
	return &Cluster{Dir: d.Dir, Server: d.server(), Nodes: d.Nodes, program: p.Kube, keeper: k}, nil
}

// describe draws an identity, chooses a network and makes the folder.
func describe(o Options, p programs) (*description, error) {
	var id [4]byte
	_, _ = rand.Read(id[:]) // it never fails
	d := &description{ID: hex.EncodeToString(id[:]), Simulated: o.SimulatedNodes, Housekeeping: o.Housekeeping, Programs: p}
	d.Dir, d.Interface = filepath.Join(Folder(), d.ID), interfaceName(d.ID)
	var err error
	if d.Subnet, err = freeSubnet(); err != nil {
		return nil, err
	}
	for i := range o.Nodes {
		d.Nodes = append(d.Nodes, Node{Name: fmt.Sprintf("node-%d", i+1), Address: d.nodeAddress(i)})
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return d, errors.Join(os.Mkdir(d.Dir, 0o755), os.WriteFile(filepath.Join(d.Dir, descriptionFile), text, 0o600))
}

// link is the connection to a keeper.
type link struct {
	mu      sync.Mutex
	orders  *os.File
	replies *os.File
	lines   *bufio.Scanner
	process *exec.Cmd
}

// order is a line that the keeper reads, reply one that it writes.
type order struct {
	Do   string
	Node string `json:",omitempty"`
	Path string `json:",omitempty"`
}

type reply struct {
	Fault string `json:",omitempty"`
}

const (
	orderOff    = "power-off"
	orderOn     = "power-on"
	orderImport = "import" // an archive of an image, on all nodes that are on
)

// Descriptors that the keeper inherits beside standard input, output and error.
const (
	repliesFile = 3
	outsideFile = 4 // the machine's network namespace
	aliveFile   = 5 // the lock that shows that the cluster is in use
)

// startKeeper starts the keeper in namespaces of its own.
func startKeeper(d *description) (k *link, err error) {
	var open []*os.File
	defer func() {
		for _, f := range open {
			_ = f.Close() // the keeper has it now
		}
	}()
	alive, err := os.OpenFile(filepath.Join(d.Dir, aliveName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	open = append(open, alive)
	if err := unix.Flock(int(alive.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("lock %s: %w", alive.Name(), err)
	}
	log, err := os.OpenFile(filepath.Join(d.Dir, "keeper.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	open = append(open, log)
	outside, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	open = append(open, outside)
	hear, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	open = append(open, hear)
	replies, tell, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, orders.Close())
	}
	open = append(open, tell)
	cmd := exec.Command("/proc/self/exe", verb, partKeeper, d.Dir)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = "/", environment(), hear, log, log, []*os.File{tell, outside, alive}
	cmd.SysProcAttr = &unix.SysProcAttr{
		Setsid: true, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the keeper of a cluster: %w", err), orders.Close(), replies.Close())
	}
	return &link{orders: orders, replies: replies, lines: bufio.NewScanner(replies), process: cmd}, nil
}

// environment is all that programs of a cluster get to see of the environment.
func environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC"}
}

// await reads one reply.
func (k *link) await() error {
	if !k.lines.Scan() {
		return fmt.Errorf("the keeper of the cluster ended: %w", errors.Join(k.lines.Err(), io.EOF))
	}
	var r reply
	if err := json.Unmarshal(k.lines.Bytes(), &r); err != nil {
		return fmt.Errorf("the keeper of the cluster said %q: %w", k.lines.Text(), err)
	}
	if r.Fault != "" {
		return errors.New(r.Fault)
	}
	return nil
}

// request gives the keeper an order and waits until it is done.
func (k *link) request(o order) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if _, err := k.orders.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("the keeper of the cluster ended: %w", err)
	}
	if err := k.await(); err != nil {
		return fmt.Errorf("%s %s: %w", o.Do, o.Node+o.Path, err)
	}
	return nil
}

// end makes the keeper end, which removes everything, and waits for it.
func (k *link) end() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.orders.Close()
	kill := time.AfterFunc(endTimeLimit, func() { _ = k.process.Process.Kill() })
	defer kill.Stop()
	if waited := k.process.Wait(); waited != nil {
		err = errors.Join(err, fmt.Errorf("the keeper of the cluster: %w", waited))
	}
	return errors.Join(err, k.replies.Close())
}

// lock waits for a lock of this machine. It may be unlocked twice.
func lock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			return sync.OnceValue(f.Close), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
	}
}
