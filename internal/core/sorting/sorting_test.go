package sorting_test

import (
	"cmp"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

func TestBy(t *testing.T) {
	type row struct {
		name   string
		number int
	}
	rows := []row{{"b", 1}, {"c", 2}, {"a", 3}, {"b", 4}, {"a", 5}}
	sorting.By(rows, func(a, b row) int { return cmp.Compare(a.name, b.name) })
	want := []row{{"a", 3}, {"a", 5}, {"b", 1}, {"b", 4}, {"c", 2}}
	if diff := gocmp.Diff(want, rows, gocmp.AllowUnexported(row{})); diff != "" {
		t.Error("equal rows must keep their order:", diff)
	}
}
