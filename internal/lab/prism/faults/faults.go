// Package faults is what goes wrong with the emulator of Prism, by script: a list of rules, each for some requests or tasks and for some
// of their occurrences. Rules are Go values, or YAML:
//
//   - request: POST /api/vmm/*/ahv/config/vms    # method and path; "*" is any part of a path
//     status: 429
//     retry_after: 2s
//     times: 3
//   - task: VmPowerOn
//     name: OLTP-0001       # of the entity; "*" is any text
//     after: 40s
//     fail: "internal error"
package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// Rule is one fault. Either Request or Task selects what it is for.
type Rule struct {
	// Request is a method and a pattern of the path: "GET /api/*/*/config/tasks/*". "*" alone as the method is any.
	Request string `yaml:"request"`
	// Body is text that the request must contain.
	Body string `yaml:"body"`
	// Task is an operation, such as VmCreate, with "*" for any text; Name is that of the entity.
	Task string `yaml:"task"`
	Name string `yaml:"name"`
	// Skip is how many occurrences go well before, and Times how many do not: 0 is all.
	Skip  int `yaml:"skip"`
	Times int `yaml:"times"`

	// Of requests.
	Delay          time.Duration `yaml:"delay"`
	Status         int           `yaml:"status"` // 412 is a conflict of ETags
	RetryAfter     time.Duration `yaml:"retry_after"`
	Drop           bool          `yaml:"drop"`            // carried out, without an answer
	ExpireSessions bool          `yaml:"expire_sessions"` // the client has to log in again

	// Of requests, too: what happens to the cluster before one is carried out. Hosts and VMs by name.
	CutHost     string `yaml:"cut_host"`     // it loses its power
	RestoreHost string `yaml:"restore_host"` // it gets its power back
	MoveVM      string `yaml:"move_vm"`      // the cluster moves it to another host; "*" is any text
	ForeignVM   string `yaml:"foreign_vm"`   // another client makes a VM of this name

	// Of tasks.
	Queued    time.Duration `yaml:"queued"`
	After     time.Duration `yaml:"after"`      // how long it runs
	Fail      string        `yaml:"fail"`       // it fails then, with this message
	FailAfter bool          `yaml:"fail_after"` // although what it was to do is done
	Lose      bool          `yaml:"lose"`       // it is not found once it has ended
}

// Script is rules that count. Its methods may be called at the same time. The zero value has none.
type Script struct {
	// Act does what a rule says to the cluster; set before the first request, nil: nothing.
	Act func(Rule)

	mu    sync.Mutex
	rules []*counted
}

type counted struct {
	Rule
	seen int
}

// rulesMax bounds a script.
const rulesMax = 1000

// Read reads a script in YAML.
func Read(r io.Reader) ([]Rule, error) {
	text, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return nil, err
	}
	var rules []Rule
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&rules); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read faults: %w", err)
	}
	var faults []error
	for i, rule := range rules {
		if err := rule.Check(); err != nil {
			faults = append(faults, fmt.Errorf("fault %d: %w", i+1, err))
		}
	}
	if len(rules) > rulesMax {
		faults = append(faults, fmt.Errorf("%d faults, want at most %d", len(rules), rulesMax))
	}
	return rules, errors.Join(faults...)
}

// Check reports what is wrong with a rule.
func (r Rule) Check() error {
	switch {
	case (r.Request == "") == (r.Task == ""):
		return errors.New("want either request or task")
	case r.Request != "" && (r.Fail != "" || r.Lose || r.After != 0 || r.Queued != 0 || r.FailAfter || r.Name != ""):
		return errors.New("name, queued, after, fail, fail_after and lose are of tasks")
	case r.Task != "" && r.acts():
		return errors.New("cut_host, restore_host, move_vm and foreign_vm are of requests")
	case r.Task != "" && (r.Status != 0 || r.Drop || r.Delay != 0 || r.ExpireSessions || r.RetryAfter != 0 || r.Body != ""):
		return errors.New("body, delay, status, retry_after, drop and expire_sessions are of requests")
	case r.Skip < 0 || r.Times < 0:
		return errors.New("skip and times: want 0 or more")
	case r.Status != 0 && (r.Status < 400 || r.Status > 599):
		return fmt.Errorf("status: %d, want 400 to 599", r.Status)
	case r.Request != "" && !strings.Contains(r.Request, " /"):
		return fmt.Errorf("request: %q, want a method and a path", r.Request)
	}
	pattern := r.Request + r.Task
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return nil
}

// acts reports whether a rule changes the cluster.
func (r Rule) acts() bool { return r.CutHost+r.RestoreHost+r.MoveVM+r.ForeignVM != "" }

// Add adds rules after those that are there: the first that matches decides.
func (s *Script) Add(rules ...Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rules {
		s.rules = append(s.rules, &counted{Rule: r})
	}
}

// Clear removes all rules.
func (s *Script) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// take finds the rule for one occurrence.
func (s *Script) take(matches func(Rule) bool) (Rule, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.rules {
		if !matches(c.Rule) {
			continue
		}
		if c.seen++; c.seen > c.Skip && (c.Times == 0 || c.seen <= c.Skip+c.Times) {
			return c.Rule, true
		}
	}
	return Rule{}, false
}

// Request implements rest.Faults.
func (s *Script) Request(r *http.Request, body []byte) rest.Trouble {
	rule, ok := s.take(func(rule Rule) bool {
		method, pattern, _ := strings.Cut(rule.Request, " ")
		if rule.Request == "" || method != "*" && method != r.Method || !strings.Contains(string(body), rule.Body) {
			return false
		}
		ok, _ := path.Match(pattern, r.URL.Path)
		return ok
	})
	if !ok {
		return rest.Trouble{}
	}
	if rule.acts() && s.Act != nil {
		s.Act(rule)
	}
	return rest.Trouble{
		Delay: rule.Delay, Status: rule.Status, RetryAfter: rule.RetryAfter, Drop: rule.Drop, Expire: rule.ExpireSessions,
		Message: "by the script of faults",
	}
}

// Timing returns how a task goes that otherwise takes a duration.
func (s *Script) Timing(operation, name string, otherwise time.Duration) state.Timing {
	rule, ok := s.take(func(rule Rule) bool {
		if rule.Task == "" {
			return false
		}
		byTask, _ := path.Match(rule.Task, operation)
		byName, _ := path.Match(rule.Name, name)
		return byTask && (rule.Name == "" || byName)
	})
	t := state.Timing{Running: otherwise}
	if !ok {
		return t
	}
	t.Queued, t.Fail, t.FailAfter, t.Lose = rule.Queued, rule.Fail, rule.FailAfter, rule.Lose
	if rule.After > 0 {
		t.Running = rule.After
	}
	return t
}
