package lab

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/lab/cable"
)

// networkLock is held on the whole machine from the choice of a network until it is taken.
const networkLock = "/run/bragg-lab.lock"

// Up creates a lab and returns when all its hosts are up. It first removes leftovers of labs whose keeper died. If it
// fails, nothing remains. hold keeps an attached lab up; closing it, or the end of this process, ends the lab.
func Up(ctx context.Context, o Options) (l *Lab, hold io.Closer, err error) {
	if err := o.Validate(); err != nil {
		return nil, nil, err
	}
	if os.Geteuid() != 0 {
		return nil, nil, &diag.Error{
			Code: "lab-root", Exit: diag.ExitUnavailable, Message: "make a lab: it needs root, for namespaces and mounts",
			Hint: "sudo bragg-lab up",
		}
	}
	if os.Getenv(childMark) != "" {
		return nil, nil, &diag.Error{Code: "lab-in-lab", Exit: diag.ExitUsage, Message: "make a lab: this program belongs to one"}
	}
	if err := o.CheckPrograms(); err != nil {
		return nil, nil, err
	}
	if l, err = reserve(ctx, &o); err != nil {
		return nil, nil, err
	}
	hold, err = l.build(ctx, &o)
	if err != nil {
		return nil, nil, errors.Join(err, l.giveUp(o.Labs))
	}
	return l, hold, nil
}

// reserve makes the folder of a lab. From then on others leave it alone, while this process lives.
func reserve(ctx context.Context, o *Options) (l *Lab, err error) {
	unlock, err := lockLabs(ctx, o.Labs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := sweep(o); err != nil {
		return nil, err
	}
	return describe(o)
}

// giveUp removes a lab that did not come up, unless another process has removed it and made a new one of that name.
func (l *Lab) giveUp(labs string) (err error) {
	unlock, err := lockLabs(context.Background(), labs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if now, err := load(labs, l.Name); err != nil || now.ID != l.ID {
		return nil //nolint:nilerr // it is not there any more
	}
	return l.remove()
}

// sweep removes what dead labs left, and refuses when the one to be made is up.
func sweep(o *Options) error {
	all, err := Labs(o.Labs)
	if err != nil {
		return err
	}
	for _, l := range all {
		dead, err := l.dead()
		switch {
		case dead:
			o.say("removing the remains of lab %q, whose keeper died", l.Name)
			if err := l.remove(); err != nil {
				return err
			}
		case l.Name != o.Name:
		case err != nil:
			return err
		default:
			return &diag.Error{
				Code: "lab-is-up", Exit: diag.ExitLocked, Message: fmt.Sprintf("make lab %q: it is up", l.Name),
				Hint: "bragg-lab down " + l.Name + " removes it; --name makes another beside it",
			}
		}
	}
	return sweepEmpty(o)
}

// sweepEmpty removes the folder of a lab that was killed before it was described, or after its description was removed.
func sweepEmpty(o *Options) error {
	dir := filepath.Join(o.Labs, o.Name)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := load(o.Labs, o.Name); !errors.Is(err, errNoLab) {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// Earlier versions wrote lab.json.new.
		if !e.Type().IsRegular() || e.Name() != stateFile+".new" && !strings.HasPrefix(e.Name(), durable.Unfinished) {
			return foreign(dir, "it holds no lab")
		}
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := os.Remove(dir); err != nil {
		return foreign(dir, "it holds no lab")
	}
	return nil
}

func (o *Options) say(format string, words ...any) {
	if o.Say != nil {
		o.Say(fmt.Sprintf(format, words...))
	}
}

// describe makes the folder of a lab, and its description before anything else.
func describe(o *Options) (*Lab, error) {
	here, err := thisMachine()
	if err != nil {
		return nil, err
	}
	maker, err := processNow(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("inspect this process: %w", err)
	}
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	l := &Lab{
		Format: stateFormat, ID: hex.EncodeToString(id[:]), Name: o.Name, Folder: Folder{Dir: filepath.Join(o.Labs, o.Name)}, Created: time.Now().UTC(),
		Machine: here, Maker: maker, Attached: o.Attached, Libvirt: !o.NoLibvirt, SSH: o.SSH, IPMI: o.IPMI,
	}
	l.Interface = "lab-" + l.ID
	for i := range o.Hosts {
		name := fmt.Sprintf("host-%d", i+1)
		l.Hosts = append(l.Hosts, Host{
			Name: name, UUID: uuid.NewString(), Serial: strings.ToUpper(fmt.Sprintf("LAB%s%02d", l.ID, i+1)), Dir: filepath.Join(l.Dir, "hosts", name),
		})
	}
	if err := os.Mkdir(l.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make lab %q: %w", l.Name, err)
	}
	if err := l.save(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(l.Dir))
	}
	return l, nil
}

// build fills the folder, starts the keeper and waits until the lab is up.
func (l *Lab) build(ctx context.Context, o *Options) (io.Closer, error) {
	if err := furnish(l, o); err != nil {
		return nil, err
	}
	unlock, err := lockFile(ctx, networkLock)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unlock() }()
	used, err := cable.Used()
	if err != nil {
		return nil, err
	}
	if l.Subnet, err = freeSubnet(used); err != nil {
		return nil, err
	}
	for i := range l.Hosts {
		l.Hosts[i].Address, l.Hosts[i].BMC = cable.Nth(l.Subnet, hostAddress+i), cable.Nth(l.Subnet, bmcAddress+i)
	}
	if err := errors.Join(addressed(l), l.save()); err != nil {
		return nil, err
	}
	orders, progress, err := l.startKeeper(o)
	if err != nil {
		return nil, err
	}
	defer progress.Close()
	stop := context.AfterFunc(ctx, func() { _ = progress.SetReadDeadline(time.Now()) })
	defer stop()
	err = l.follow(progress, o, unlock)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err == nil && !l.Attached {
		_, err = io.WriteString(orders, orderStay+"\n")
	}
	if err != nil {
		return nil, errors.Join(err, orders.Close())
	}
	return orders, nil
}

// startKeeper starts the first process of a lab, in namespaces of its own, and records it before it does anything.
func (l *Lab) startKeeper(o *Options) (orders, progress *os.File, err error) {
	var open []*os.File
	defer func() {
		for _, f := range open {
			_ = f.Close() // the keeper has it now
		}
	}()
	log, err := os.OpenFile(l.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("start the keeper of lab %q: %w", l.Name, err)
	}
	open = append(open, log)
	outside, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, nil, fmt.Errorf("start the keeper of lab %q: %w", l.Name, err)
	}
	open = append(open, outside)
	hear, orders, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start the keeper of lab %q: %w", l.Name, err)
	}
	progress, tell, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the keeper of lab %q: %w", l.Name, err), hear.Close(), orders.Close())
	}
	open = append(open, hear, tell)
	cmd := exec.Command(o.Program, Verb, roleKeeper, l.Dir)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = "/", environment(), hear, log, log, []*os.File{tell, outside}
	cmd.SysProcAttr = &unix.SysProcAttr{
		Setsid: true, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	if err = cmd.Start(); err == nil {
		if l.Keeper, err = processNow(cmd.Process.Pid); err == nil {
			err = l.save()
		} else {
			err = fmt.Errorf("its keeper ended%s", l.LastWords())
		}
		go func() { _ = cmd.Wait() }() // reap it while this process continues
	}
	if err == nil {
		_, err = io.WriteString(orders, orderGo+"\n")
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the keeper of lab %q: %w", l.Name, err), orders.Close(), progress.Close())
	}
	return orders, progress, nil
}

// follow reads what the keeper tells until the lab is up.
func (l *Lab) follow(progress io.Reader, o *Options, connected func() error) error {
	lines := bufio.NewScanner(progress)
	for lines.Scan() {
		var n message
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			return fmt.Errorf("make lab %q: the keeper said %q: %w", l.Name, lines.Text(), err)
		}
		switch {
		case n.Fault != "":
			return &diag.Error{
				Code: "lab-failed", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("make lab %q: %s%s", l.Name, n.Fault, l.LastWords()),
			}
		case n.Up:
			return nil
		case n.Connected:
			if err := connected(); err != nil {
				return err
			}
		default:
			o.say("%s", n.Say)
		}
	}
	return &diag.Error{
		Code: "lab-failed", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("make lab %q: its keeper ended%s", l.Name, l.LastWords()),
	}
}
