package state

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Status of a task.
type Status string

// States of tasks.
const (
	Queued    Status = "QUEUED"
	Running   Status = "RUNNING"
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
	Canceled  Status = "CANCELED"
)

// Entity is a reference with the relation that v4 names, such as "vmm:ahv:config:vm".
type Entity struct{ ID, Rel, Name string }

// Relations of entities.
const (
	RelVM        = "vmm:ahv:config:vm"
	RelImage     = "vmm:content:image"
	RelHost      = "clustermgmt:config:host"
	RelContainer = "clustermgmt:config:storage-container"
	RelPoint     = "dataprotection:config:recovery-point"
	RelPointVM   = "vmm:ahv:config:vm-recovery-point"
	RelPolicy    = "vmm:ahv:policies:vm-host-affinity-policy"
)

// Task is an operation that takes time.
type Task struct {
	ID                                   string // a UUID; v4 adds the prefix of its service
	Operation, Description               string
	Status                               Status
	Entities                             []Entity
	Created, Started, Completed, Updated time.Time
	Expected                             time.Duration // of Running
	Error                                string
	Cancelable                           bool
	lose                                 bool
	cancel                               context.CancelFunc
}

// Ended reports whether the task is over.
func (t *Task) Ended() bool {
	return t.Status == Succeeded || t.Status == Failed || t.Status == Canceled
}

// cancelable are the operations that the cluster can end before they are complete.
var cancelable = []string{"VmMigrate", "ImageCreate", "EnterHostMaintenance"}

// CancelTask ends a task before what it does is done.
func (p *base) CancelTask(id string) error {
	return p.change(func(d *Data) error {
		switch t := d.Task(id); {
		case t == nil:
			return Missing("task", id)
		case !t.Cancelable:
			return Invalidf("task %s cannot be canceled", id)
		case t.Ended():
			return Invalidf("task %s has ended", id)
		default:
			t.cancel()
			return nil
		}
	})
}

// tasksMax bounds how many tasks are remembered.
const tasksMax = 5000

// Progress is in percent.
func (t *Task) Progress(now time.Time) int {
	switch {
	case t.Status == Succeeded:
		return 100
	case t.Status == Queued || t.Expected <= 0:
		return 0
	}
	return int(min(99, 100*now.Sub(t.Started)/t.Expected))
}

// Task returns a task by its UUID, nil if there is none.
func (d *Data) Task(id string) *Task { return find(d.Tasks, id, func(t *Task) string { return t.ID }) }

// job is what a task does.
type job struct {
	operation   string // "VmCreate"
	description string
	entities    []Entity
	do          func() error
}

// begin starts a task and returns its id. The job runs at the end of its time.
func (p *base) begin(j job) (string, error) {
	name := ""
	if len(j.entities) > 0 {
		name = j.entities[0].Name
	}
	timing := p.options.Timing(j.operation, name)
	t := &Task{
		ID: NewID(), Operation: j.operation, Description: j.description, Status: Queued, Entities: j.entities, Created: p.Now(),
		Expected: timing.Running, lose: timing.Lose, Cancelable: slices.Contains(cancelable, j.operation),
	}
	var ctx context.Context
	ctx, t.cancel = context.WithCancel(p.ctx)
	t.Updated = t.Created
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		t.cancel()
		return "", refuse(Busy, "the cluster is shutting down")
	}
	p.data.Tasks = append(p.data.Tasks, t)
	if over := len(p.data.Tasks) - tasksMax; over > 0 {
		p.data.Tasks = slices.Delete(p.data.Tasks, 0, over)
	}
	p.work.Go(func() {
		defer t.cancel()
		p.run(ctx, t, j, timing)
	})
	return t.ID, nil
}

func (p *base) run(ctx context.Context, t *Task, j job, timing Timing) {
	if !pause(ctx, timing.Queued) {
		p.canceled(t)
		return
	}
	p.step(t, func() { t.Status, t.Started = Running, p.Now() })
	if !pause(ctx, timing.Running) {
		p.canceled(t)
		return
	}
	var err error
	if timing.Fail == "" || timing.FailAfter {
		err = j.do()
	}
	if timing.Fail != "" {
		err = fmt.Errorf("%s", timing.Fail)
	}
	p.step(t, func() {
		t.Status, t.Completed = Succeeded, p.Now()
		if err != nil {
			t.Status, t.Error = Failed, err.Error()
		}
		if t.lose {
			p.data.Tasks = slices.DeleteFunc(p.data.Tasks, func(o *Task) bool { return o == t })
		}
	})
}

// canceled ends a task that has done nothing.
func (p *base) canceled(t *Task) {
	if p.ctx.Err() == nil {
		p.step(t, func() { t.Status, t.Completed = Canceled, p.Now() })
	}
}

func (p *base) step(t *Task, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	t.Updated = p.Now()
}

// Await returns the outcome of a task, for tests and for operations without a task of their own.
func (p *base) Await(id string) error {
	for {
		var done bool
		var fault string
		p.Read(func(d *Data) {
			t := d.Task(id)
			done = t == nil || t.Ended()
			if t != nil {
				fault = t.Error
			}
		})
		if done {
			if fault = strings.TrimSpace(fault); fault != "" {
				return fmt.Errorf("%s", fault)
			}
			return nil
		}
		if !p.pause(2 * time.Millisecond) {
			return p.ctx.Err()
		}
	}
}
