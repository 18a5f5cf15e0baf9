package prism

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/wait"
)

const (
	pageLimit = 100
	pagesMax  = 1000 // 100,000 objects
	// listBytesMax bounds all pages of a list.
	listBytesMax = 512 << 20
	// conflictsMax bounds how often a change is made again because the object changed meanwhile.
	conflictsMax = 8
)

// Get reads one object into out and returns its ETag.
func (c *Client) Get(ctx context.Context, namespace, path string, query url.Values, out any) (etag string, err error) {
	a, err := c.Do(ctx, Request{Method: http.MethodGet, Namespace: namespace, Path: path, Query: query})
	if err != nil {
		return "", err
	}
	return a.ETag, decode(a, namespace+"/"+path, out)
}

// decode reads the data of an answer of v4.
func decode(a Answer, what string, out any) error {
	var answer struct{ Data json.RawMessage }
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return fmt.Errorf("read the answer of Prism for %s: %w", what, err)
	}
	if len(answer.Data) == 0 {
		return nil
	}
	if err := json.Unmarshal(answer.Data, out); err != nil {
		return fmt.Errorf("read the answer of Prism for %s: %w", what, err)
	}
	return nil
}

// List reads all pages of a list. The objects are those of several moments if there is more than one page.
func List[T any](ctx context.Context, c *Client, namespace, path string, query url.Values) ([]T, error) {
	all := []T{}
	bytesRead := 0
	for page := range pagesMax {
		q := url.Values{}
		maps.Copy(q, query)
		q.Set("$page", strconv.Itoa(page))
		q.Set("$limit", strconv.Itoa(pageLimit))
		a, err := c.Do(ctx, Request{Method: http.MethodGet, Namespace: namespace, Path: path, Query: q})
		if err != nil {
			return nil, err
		}
		var answer struct {
			Data     []T
			Metadata struct{ TotalAvailableResults int }
		}
		if err := json.Unmarshal(a.Body, &answer); err != nil {
			return nil, fmt.Errorf("read the list of Prism for %s/%s: %w", namespace, path, err)
		}
		all = append(all, answer.Data...)
		bytesRead += len(a.Body)
		if len(all) > pageLimit*pagesMax || bytesRead > listBytesMax {
			return nil, fmt.Errorf("read the list of Prism for %s/%s: more than %d objects or %d MiB", namespace, path, pageLimit*pagesMax, listBytesMax>>20)
		}
		if len(answer.Data) < pageLimit || len(all) == answer.Metadata.TotalAvailableResults {
			return all, nil
		}
	}
	return nil, fmt.Errorf("read the list of Prism for %s/%s: more than %d pages of %d", namespace, path, pagesMax, pageLimit)
}

// Filter makes the query of a list: name eq 'value', and so on. Quotes in values are doubled, as OData wants it.
func Filter(format string, values ...string) url.Values {
	quoted := make([]any, len(values))
	for i, v := range values {
		quoted[i] = Quote(v)
	}
	return url.Values{"$filter": {fmt.Sprintf(format, quoted...)}}
}

// Quote makes a text of a filter.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// Create makes a new object and awaits its task. id is that of one request, however often it is made.
func (c *Client) Create(ctx context.Context, namespace, path string, body any, id uuid.UUID) (Task, error) {
	a, err := c.answer(ctx, Request{Method: http.MethodPost, Namespace: namespace, Path: path, Body: body, ID: id})
	if err != nil {
		return Task{}, err
	}
	return c.taskOf(ctx, a, namespace+"/"+path)
}

// Edit is what Change does to an object: a request without its ETag. A request without a method does nothing.
type Edit func(object json.RawMessage) (Request, error)

// Change reads an object, makes the request of edit with its ETag, and awaits the task. If the object changed meanwhile it reads and
// edits again.
func (c *Client) Change(ctx context.Context, namespace, path string, edit Edit) (Task, error) {
	for round := range conflictsMax {
		var object json.RawMessage
		etag, err := c.Get(ctx, namespace, path, nil, &object)
		if err != nil {
			return Task{}, err
		}
		r, err := edit(object)
		if err != nil || r.Method == "" {
			return Task{}, err
		}
		if r.Namespace == "" && r.Raw == "" {
			r.Namespace, r.Path = namespace, path+r.Path
		}
		if r.IfMatch = etag; round > 0 {
			r.ID = uuid.New() // the refused request was another one
		}
		a, err := c.answer(ctx, r)
		if IsStatus(err, http.StatusPreconditionFailed) {
			if err := c.pause(ctx, pollFirst); err != nil {
				return Task{}, err
			}
			continue
		}
		if err != nil {
			return Task{}, err
		}
		return c.taskOf(ctx, a, what(r))
	}
	return Task{}, fmt.Errorf("change %s/%s: it changed %d times meanwhile", namespace, path, conflictsMax)
}

// answerMax bounds the wait for the answer to a change after its context has ended.
const answerMax = 10 * time.Second

// answer makes the request of a change. If ctx ends meanwhile it waits for the answer all the same, as that names the task to be cancelled.
func (c *Client) answer(ctx context.Context, r Request) (Answer, error) {
	if ctx.Err() != nil {
		return Answer{}, context.Cause(ctx)
	}
	inner, end := wait.Outlasting(ctx, answerMax)
	defer end()
	return c.Do(inner, r)
}

// Merge returns object with some of its fields replaced, so that fields which this program does not know stay as they are.
func Merge(object json.RawMessage, fields map[string]any) (map[string]any, error) {
	all := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber() // sizes of disks have more digits than a float
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("read an object of Prism: %w", err)
	}
	maps.Copy(all, fields)
	return all, nil
}
