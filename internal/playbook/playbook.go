// Package playbook runs Ansible playbooks of a scenario on the machines of a run: VMs, hosts in their place, nodes of the target. It
// runs the real ansible-playbook, which sees no configuration of the user, and records its tasks. It does not parse playbooks beyond
// what a plan has to know.
//
//	Lacks (lacks.go): target, programs and files that a playbook needs ──▶ plan
//	Run ──▶ logins of the target ──▶ inventory (inventory.go), settings (settings.go) ──▶ ansible-playbook
//	     ──▶ what it prints, bounded and without secrets (output.go)
//	     ──▶ callback.py ──▶ tasks (tasks.go) ──▶ events, error of the step
package playbook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/verb"
)

// Names under which an inventory holds the target's hosts and their storage controllers. A VM group of the same name is hidden
// by them, as in X-Ray.
const (
	NodesInventory = "nodes"
	CVMsInventory  = "cvms"
)

// ansible is the program that runs playbooks.
const ansible = "ansible-playbook"

// Playbook is a playbook of the scenario and the VM groups on which it runs.
type Playbook struct {
	Filename  string // in the scenario's folder
	Inventory []string
	User      string
	Password  string
	Variables map[string]any
	Forks     int // hosts at a time
}

// outputBytesMax is how much of the end of ansible's output an error may be searched in.
const outputBytesMax = 4 << 10

// Run runs the playbook with what ansible needs in a private folder, which it removes.
func (p *Playbook) Run(ctx context.Context, env *verb.Env) error {
	path, err := exec.LookPath(ansible)
	if err != nil {
		return err
	}
	// If this program is killed, files with passwords are removed with the journal.
	if err := os.MkdirAll(env.Private, 0o700); err != nil {
		return err
	}
	private, err := os.MkdirTemp(env.Private, "playbook-")
	if err == nil {
		private, err = filepath.Abs(private)
	}
	if err != nil {
		return err
	}
	defer os.RemoveAll(private)
	folder, err := p.folder(env.Scenario, private)
	if err != nil {
		return err
	}
	machines, err := p.machines(ctx, env)
	if err != nil {
		return err
	}
	s := settings{private: private, known: filepath.Join(filepath.Dir(private), "known_hosts")}
	if err := s.write(); err != nil {
		return err
	}
	inventory, err := p.inventory(&s, machines)
	if err != nil {
		return err
	}
	hosts, variables := filepath.Join(private, "inventory.json"), filepath.Join(private, "variables.json")
	if err := errors.Join(writeJSON(hosts, inventory), writeJSON(variables, p.extra(env))); err != nil {
		return err
	}
	c := program.Command{
		Path: path, Dir: folder, Env: s.environment(), Alone: true,
		Args: []string{"--inventory", hosts, "--extra-vars", "@" + variables, "--forks", strconv.Itoa(p.Forks), filepath.Join(folder, p.Filename)},
	}
	return p.run(ctx, env, c, machines)
}

// run runs ansible, whose tasks come through a pipe.
func (p *Playbook) run(ctx context.Context, env *verb.Env, c program.Command, m machines) error {
	kept, err := p.output(env, m)
	if err != nil {
		return err
	}
	defer kept.Close()
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	tail := &textio.Tail{MaxBytes: outputBytesMax}
	both := io.MultiWriter(kept, tail)
	c.Stdout, c.Stderr, c.Files = both, both, []*os.File{out}
	process, err := c.Start()
	_ = out.Close()
	if err != nil {
		return err
	}
	t := &tasks{notes: env.Notes, machines: m, mask: kept.mask, playbook: p.Filename}
	read := make(chan struct{})
	go func() {
		defer close(read)
		t.read(in)
	}()
	err = wait(ctx, process)
	// A descendant that outlives ansible, which is possible without namespaces, would hold the pipe.
	_ = in.SetReadDeadline(time.Now().Add(stopWithin))
	<-read
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		return t.idle()
	}
	if failed := t.failed(); failed != nil {
		return failed
	}
	return fmt.Errorf("run %s: %w%s", ansible, err, complaint(kept.mask(tail.String())))
}

// stopWithin is how long ansible may take to end its connections when it is interrupted.
const stopWithin = 5 * time.Second

// wait waits for the end of ansible, which it interrupts when ctx ends.
func wait(ctx context.Context, process *program.Process) error {
	select {
	case <-process.Done():
		return process.Wait()
	case <-ctx.Done():
	}
	process.Signal(os.Interrupt)
	late := time.AfterFunc(stopWithin, process.Kill)
	defer late.Stop()
	return process.Wait()
}

// complaint is the last error in ansible's output: of a playbook that it cannot read, for instance. Since ansible-core 2.19 it begins
// differently.
func complaint(output string) string {
	for _, mark := range []string{"[ERROR]: ", "ERROR! "} {
		if at := strings.LastIndex(output, mark); at >= 0 {
			text, _, _ := strings.Cut(output[at+len(mark):], "\n\n")
			return ": " + short(text)
		}
	}
	return ""
}

// folder returns the absolute path of the scenario's folder, which is unpacked into private if it is a zip file.
func (p *Playbook) folder(sc *scenario.Scenario, private string) (string, error) {
	switch {
	case sc.Dir != "":
		return filepath.Abs(sc.Dir)
	case sc.Archive == "":
		return "", errors.New("the scenario has no folder of its own")
	}
	dir := filepath.Join(private, "scenario")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return dir, sc.Unpack(dir)
}
