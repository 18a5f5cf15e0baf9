package pool

import (
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
)

func TestClockJumps(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		before, now client.Clock
		want        string // of the messages
	}{
		"nothing":               {client.Clock{Wall: time.Hour}, client.Clock{Wall: time.Hour + 90*ms, Standstill: 5 * ms}, ""},
		"noise":                 {client.Clock{Error: 300 * ms}, client.Clock{Wall: 500 * ms, Standstill: 500 * ms, Error: 300 * ms}, ""},
		"set ahead":             {client.Clock{}, client.Clock{Wall: 150 * ms}, "wall clock jumped by 150 ms"},
		"set back by a year":    {client.Clock{}, client.Clock{Wall: -8760 * time.Hour}, "wall clock jumped by −8760 h"},
		"paused with its clock": {client.Clock{}, client.Clock{Wall: -5 * time.Second, Standstill: 5 * time.Second}, "was paused"},
		"paused and set right":  {client.Clock{}, client.Clock{Standstill: 5 * time.Second}, "was paused"},
		"our own":               {client.Clock{Own: time.Hour}, client.Clock{Own: 2 * time.Hour}, "wall clock of this machine jumped by 1 h"},
		"our own only":          {client.Clock{Wall: 3 * time.Second}, client.Clock{Wall: 3 * time.Second, Own: -time.Second}, "this machine jumped by −1 s"},
	} {
		var got []string
		for _, e := range clockJumps(tt.before, tt.now) {
			got = append(got, e.Message)
		}
		switch {
		case tt.want == "" && got != nil:
			t.Errorf("%s: got %q", name, got)
		case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)):
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
