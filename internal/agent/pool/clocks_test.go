package pool

import (
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent"
)

func TestClockJumps(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		before, now agent.Clock
		want        string // of the messages
	}{
		"nothing":                  {agent.Clock{Wall: time.Hour}, agent.Clock{Wall: time.Hour + 90*ms, Standstill: 5 * ms}, ""},
		"noise":                    {agent.Clock{Error: 300 * ms}, agent.Clock{Wall: 500 * ms, Standstill: 500 * ms, Error: 300 * ms}, ""},
		"set ahead":                {agent.Clock{}, agent.Clock{Wall: 150 * ms}, "wall clock jumped by 150 ms"},
		"set back by a year":       {agent.Clock{}, agent.Clock{Wall: -8760 * time.Hour}, "wall clock jumped by -8760 h"},
		"paused with its clock":    {agent.Clock{}, agent.Clock{Wall: -5 * time.Second, Standstill: 5 * time.Second}, "stood still"},
		"paused and set right":     {agent.Clock{}, agent.Clock{Standstill: 5 * time.Second}, "stood still"},
		"our own":                  {agent.Clock{Own: time.Hour}, agent.Clock{Own: 2 * time.Hour}, "wall clock of this machine jumped by 1 h"},
		"our own, and nobody else": {agent.Clock{Wall: 3 * time.Second}, agent.Clock{Wall: 3 * time.Second, Own: -time.Second}, "this machine jumped by -1 s"},
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
