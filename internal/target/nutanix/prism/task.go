package prism

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/braggdev/bragg/internal/diag"
)

// Pauses between two polls of a task.
const (
	pollFirst = 300 * time.Millisecond
	pollMax   = 5 * time.Second
	// taskMax bounds the wait for one task, whatever the context says: uploads and migrations of large VMs take minutes.
	taskMax = time.Hour
	// cancelMax bounds the wait for the end of a task that is cancelled.
	cancelMax = 30 * time.Second
)

// Task is a change that Prism makes in the background.
type Task struct {
	ExtID    string `json:"extId"`
	Status   string `json:"status"`
	Progress int    `json:"progressPercentage"`
	// Cancelable: Prism can end it before it is complete, such as a migration.
	Cancelable bool     `json:"isCancelable"`
	Entities   []Entity `json:"entitiesAffected"`
	Errors     []struct {
		Message string `json:"message"`
		Code    string `json:"code"`
	} `json:"errorMessages"`
	Operation string `json:"operation"`
	Owner     struct {
		Name string `json:"name"`
	} `json:"ownedBy"` // the user who requested it
}

// Ended reports whether the task is over, whatever its outcome.
func (t Task) Ended() bool {
	return t.Status == "SUCCEEDED" || t.Status == "FAILED" || t.Status == "CANCELED"
}

// Entity is an object that a task concerns.
type Entity struct {
	ExtID string `json:"extId"`
	Rel   string `json:"rel"` // "vmm:ahv:config:vm"
}

// Of returns the id of the object of a kind that the task concerns; "" if there is none.
func (t Task) Of(rel string) string {
	for _, e := range t.Entities {
		if e.Rel == rel {
			return e.ExtID
		}
	}
	return ""
}

// TaskError is a task that ended without success.
type TaskError struct {
	What   string
	Status string
	Text   string
	Codes  []string
}

func (e *TaskError) Error() string {
	text := fmt.Sprintf("the task of Prism for %s ended as %s", e.What, e.Status)
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// ErrTaskLost means that Prism does not know the task any more: whether the change was made must be seen from its object.
var ErrTaskLost error = &diag.Error{
	Code: CodeTask, Exit: diag.ExitUnavailable, Message: "prism lost the task: the outcome of the change is not known",
}

// taskOf awaits the task that an answer refers to. An answer without one is a change that is complete.
func (c *Client) taskOf(ctx context.Context, a Answer, what string) (Task, error) {
	var ref struct {
		ExtID      string `json:"extId"`
		ObjectType string `json:"$objectType"`
	}
	if len(a.Body) == 0 {
		return Task{}, nil
	}
	if err := decode(a, what, &ref); err != nil {
		return Task{}, err
	}
	if ref.ObjectType != "prism.v4.config.TaskReference" && a.Status != 202 {
		return Task{Status: "SUCCEEDED", Entities: []Entity{{ExtID: ref.ExtID}}}, nil
	}
	return c.Await(ctx, ref.ExtID, what)
}

// Await polls a task until it ends. The error is a *TaskError if it failed, or ErrTaskLost. If ctx ends before, the task is cancelled where Prism
// can do that: it would go on otherwise.
func (c *Client) Await(ctx context.Context, id, what string) (Task, error) {
	if id == "" {
		return Task{}, fmt.Errorf("%s: %w", what, ErrTaskLost)
	}
	ctx, cancel := context.WithTimeout(ctx, taskMax)
	defer cancel()
	pause := pollFirst
	for {
		var t Task
		_, err := c.Get(ctx, "prism", "config/tasks/"+url.PathEscape(id), nil, &t)
		switch {
		case IsGone(err):
			return t, fmt.Errorf("%s: %w", what, ErrTaskLost)
		case err != nil:
			if ctx.Err() != nil {
				c.cancel(context.WithoutCancel(ctx), id)
			}
			return t, err
		}
		switch t.Status {
		case "SUCCEEDED":
			return t, nil
		case "FAILED", "CANCELED":
			return t, c.taskError(t, what)
		}
		if err := c.pause(ctx, pause); err != nil {
			c.cancel(context.WithoutCancel(ctx), id)
			return t, fmt.Errorf("await the task of Prism for %s, which is at %d %%: %w", what, t.Progress, err)
		}
		pause = min(pause*3/2, pollMax)
	}
}

// cancel ends a task, and waits for its end for a limited time. It is best effort: callers remove what the task made.
func (c *Client) cancel(ctx context.Context, id string) {
	ctx, stop := context.WithTimeout(ctx, cancelMax)
	defer stop()
	path := "config/tasks/" + url.PathEscape(id)
	var now Task
	if _, err := c.Get(ctx, "prism", path, nil, &now); err != nil || now.Ended() || !now.Cancelable {
		return
	}
	if _, err := c.Do(ctx, Request{Method: http.MethodPost, Namespace: "prism", Path: path + "/$actions/cancel"}); err != nil {
		return // it ended meanwhile, or the user lacks the privilege
	}
	for {
		var t Task
		if _, err := c.Get(ctx, "prism", path, nil, &t); err != nil || t.Ended() || c.pause(ctx, pollFirst) != nil {
			return
		}
	}
}

func (c *Client) taskError(t Task, what string) error {
	e := &TaskError{What: what, Status: t.Status}
	var texts []string
	for _, m := range t.Errors {
		texts, e.Codes = append(texts, m.Message), append(e.Codes, m.Code)
	}
	e.Text = c.words(texts)
	return &diag.Error{Code: CodeTask, Exit: diag.ExitUnavailable, Message: "change the cluster", Err: e}
}

// Uncertain reports whether err leaves open if a change was made: its task was lost, or no answer came.
func Uncertain(err error) bool {
	var told *diag.Error
	return errors.Is(err, ErrTaskLost) || errors.As(err, &told) && told.Code == CodeUnreachable || IsStatus(err, 503) || IsStatus(err, 504) || IsStatus(err, 502)
}

// AwaitV3 polls a task of v3 until it ends. An empty id is a change without a task.
func (c *Client) AwaitV3(ctx context.Context, id, what string) error {
	if id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, taskMax)
	defer cancel()
	pause := pollFirst
	for {
		a, err := c.Do(ctx, Request{Method: http.MethodGet, Raw: "/api/nutanix/v3/tasks/" + url.PathEscape(id)})
		switch {
		case IsGone(err):
			return fmt.Errorf("%s: %w", what, ErrTaskLost)
		case err != nil:
			return err
		}
		var t struct {
			Status string `json:"status"`
			Error  string `json:"error_detail"`
		}
		if err := json.Unmarshal(a.Body, &t); err != nil {
			return fmt.Errorf("read a task of Prism for %s: %w", what, err)
		}
		switch t.Status {
		case "SUCCEEDED":
			return nil
		case "FAILED", "ABORTED":
			e := &TaskError{What: what, Status: t.Status, Text: c.words([]string{t.Error})}
			return &diag.Error{Code: CodeTask, Exit: diag.ExitUnavailable, Message: "change the cluster", Err: e}
		}
		if err := c.pause(ctx, pause); err != nil {
			return fmt.Errorf("await the task of Prism for %s: %w", what, err)
		}
		pause = min(pause*3/2, pollMax)
	}
}
