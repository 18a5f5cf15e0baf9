package bmc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// Bounds of the owner's own check.
const (
	healthTimeLimit = time.Minute
	healthBytesMax  = 1 << 20
	healthTextMax   = 200 // bytes of its output that are shown
)

// askHealth runs the check that the target file names, and returns its result in words. Unknown means that the check could
// not run, which blocks a cut.
func askHealth(ctx context.Context, h target.Health) (Answer, string) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeLimit)
	defer cancel()
	if len(h.Command) > 0 {
		return runHealth(ctx, h.Command)
	}
	return queryHealth(ctx, h)
}

// runHealth runs the program; its success means that the target has recovered.
func runHealth(ctx context.Context, command []string) (Answer, string) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second
	target.Apart(cmd)
	out, err := cmd.CombinedOutput()
	said := lastLine(string(out))
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Unknown, fmt.Sprintf("%s has not ended within %v", command[0], healthTimeLimit)
	case errors.As(err, &ended):
		return No, fmt.Sprintf("%s: %v: %s", command[0], err, said)
	case err != nil:
		return Unknown, err.Error()
	}
	return Yes, fmt.Sprintf("%s: %s", command[0], said)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	text = text[strings.LastIndexByte(text, '\n')+1:]
	return strings.ToValidUTF8(text[:min(len(text), healthTextMax)], "")
}

// queryHealth queries a Prometheus server. At least one series means that the target has recovered; none means that it has
// not, or that the exporter is gone.
func queryHealth(ctx context.Context, h target.Health) (Answer, string) {
	address := strings.TrimSuffix(h.Prometheus, "/") + "/api/v1/query?" + url.Values{"query": {h.Query}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return Unknown, err.Error()
	}
	client := &http.Client{
		// Connect to this server only: no redirects, no proxy from the environment.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return Unknown, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, healthBytesMax))
	var answer struct {
		Status string
		Error  string
		Data   struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	switch {
	case err != nil:
		return Unknown, fmt.Sprintf("the answer with status %d is not from Prometheus: %v", response.StatusCode, err)
	case answer.Status != "success":
		return Unknown, fmt.Sprintf("Prometheus refused the query: %s", lastLine(answer.Error))
	}
	var series []json.RawMessage
	if answer.Data.ResultType != "vector" || json.Unmarshal(answer.Data.Result, &series) != nil {
		return Unknown, fmt.Sprintf("the query gives a %s, want a vector", lastLine(answer.Data.ResultType))
	}
	said := fmt.Sprintf("%s gives %d series", h.Query, len(series))
	if len(series) == 0 {
		return No, said
	}
	return Yes, said
}

// redundancy combines the answers of the provider and of the owner's check: either can block, and either can confirm.
func redundancy(provider Answer, found string, check Answer, said string) (Answer, string) {
	both := strings.Trim(found+"; "+said, "; ")
	switch {
	case provider == No || check == No:
		return No, both
	case check == Unknown:
		return Unknown, both
	}
	return Yes, both
}
