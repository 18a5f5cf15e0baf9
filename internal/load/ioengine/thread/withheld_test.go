package thread

import "testing"

// TestWithheldFrom: what a machine of many CPUs kept back in all is not what one thread lacked.
func TestWithheldFrom(t *testing.T) {
	const second = int64(1e9)
	for name, c := range map[string]struct {
		before, now       Withheld
		used              int64
		cpus              int
		stolen, throttled int64
	}{
		"64 busy CPUs, 0.4 % of each stolen":      {Withheld{}, Withheld{Stolen: 256e6, Used: 64 * second}, second, 64, 4e6, 0},
		"the only busy CPU, half of it stolen":    {Withheld{}, Withheld{Stolen: 500e6, Used: 500e6}, 500e6, 64, 500e6, 0},
		"a thread that did little":                {Withheld{}, Withheld{Stolen: second, Used: 2 * second}, 10e6, 4, 5e6, 0},
		"ticks that lag behind the thread's time": {Withheld{Used: second}, Withheld{Stolen: 20e6, Used: second}, 30e6, 2, 20e6, 0},
		"a limit that holds four CPUs back":       {Withheld{Throttled: second}, Withheld{Throttled: 3 * second}, second, 4, 0, 500e6},
	} {
		if stolen, throttled := c.now.From(c.before, c.used, c.cpus); stolen != c.stolen || throttled != c.throttled {
			t.Errorf("%s: %d stolen and %d throttled, want %d and %d", name, stolen, throttled, c.stolen, c.throttled)
		}
	}
}
