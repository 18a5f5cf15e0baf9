package ahv

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// priorityNever keeps AHV from restarting a VM after a failure of its host.
const priorityNever = -1

// SetRestart sets whether a VM restarts on another host. v4 has no such field, so v2 of the cluster does it, to which Prism Central
// passes the request.
func (c *Cluster) SetRestart(ctx context.Context, id string, enabled bool) error {
	priority := 0
	if !enabled {
		priority = priorityNever
	}
	_, err := c.Prism.Do(ctx, prism.Request{
		Method: http.MethodPut, Raw: "/PrismGateway/services/rest/v2.0/vms/" + url.PathEscape(id),
		Query: url.Values{"proxyClusterUuid": {c.ID}}, Body: map[string]any{"ha_priority": priority},
	})
	if err != nil {
		return fmt.Errorf("set the priority of its restart: %w", err)
	}
	return nil
}
