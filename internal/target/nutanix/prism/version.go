package prism

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"

	"github.com/braggdev/bragg/internal/diag"
)

// minorMax is the newest minor version of v4 that this client was written for.
const minorMax = 3

// version4 is a released version of v4. Betas (v4.0.b1) had other paths and fields.
var version4 = regexp.MustCompile(`^v4\.([0-9]{1,3})$`)

// version returns the version of a namespace that Prism and this client both know. It is negotiated once.
func (c *Client) version(ctx context.Context, namespace string) (string, error) {
	c.mu.Lock()
	known := c.versions[namespace]
	c.mu.Unlock()
	if known != "" {
		return known, nil
	}
	a, err := c.Do(ctx, Request{Method: http.MethodOptions, Raw: "/api/" + namespace + "/unversioned/info"})
	if IsGone(err) || IsStatus(err, http.StatusMethodNotAllowed) {
		return "", c.noVersion(namespace, "does not have it")
	}
	if err != nil {
		return "", fmt.Errorf("find the version of the API %q: %w", namespace, err)
	}
	var answer struct{ Data string }
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return "", c.noVersion(namespace, "gives no version")
	}
	parts := version4.FindStringSubmatch(answer.Data)
	if parts == nil {
		return "", c.noVersion(namespace, fmt.Sprintf("has version %.20q", answer.Data))
	}
	minor, _ := strconv.Atoi(parts[1])
	version := fmt.Sprintf("v4.%d", min(minor, minorMax))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions[namespace] = version
	return version, nil
}

// Know negotiates the versions of namespaces, or returns why they cannot be used.
func (c *Client) Know(ctx context.Context, namespaces ...string) error {
	for _, namespace := range namespaces {
		if _, err := c.version(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

// Versions returns the negotiated versions by namespace.
func (c *Client) Versions() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.versions)
}

func (c *Client) noVersion(namespace, why string) error {
	return &diag.Error{
		Code: CodeVersion, Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("use the API %q in version 4 of Prism at %s: it %s", namespace, c.Address(), why),
		Hint:    "the endpoint must be a Prism Central with the released API v4 (pc.2024.3 or later), not a Prism Element",
	}
}
