package crowd_test

import (
	"fmt"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/crowd"
)

// TestOneGroupPushesOutItsOwn: a member of a small group stays however many a large group adds.
func TestOneGroupPushesOutItsOwn(t *testing.T) {
	t.Parallel()
	c := crowd.New[string](4)
	for i, step := range []struct{ group, who, left string }{
		{"small", "s1", ""},
		{"large", "l1", ""},
		{"large", "l2", ""},
		{"large", "l3", ""},
		{"large", "l4", "l1"},
		{"large", "l5", "l2"},
		{"third", "t1", "l3"},
		{"small", "s2", "s1"},
	} {
		left, full := c.Add(step.group, step.who)
		if left != step.left || full != (step.left != "") || c.Len() > 4 {
			t.Errorf("step %d: %s replaces %q, want %q; %d are there", i, step.who, left, step.left, c.Len())
		}
	}
	c.Remove("l5")
	c.Remove("nobody")
	var rest []string
	for who, ok := c.Next(); ok; who, ok = c.Next() {
		rest = append(rest, who)
	}
	if fmt.Sprint(rest) != "[l4 t1 s2]" {
		t.Errorf("left are %q", rest)
	}
}

// TestEqualGroups: when all groups are equally large, the oldest member of all leaves.
func TestEqualGroups(t *testing.T) {
	t.Parallel()
	c := crowd.New[int](3)
	for i := range 3 {
		c.Add(fmt.Sprint(i), i)
	}
	if left, full := c.Add("3", 3); !full || left != 0 {
		t.Errorf("%d leaves, %t", left, full)
	}
}
