// Package crowd bounds a set that several groups share, such as the namespaces of a cluster or the
// addresses of callers. A group that adds too many members pushes out its own.
package crowd

import "slices"

// Crowd holds a limited number of members in the order of their arrival. It isn't safe for
// concurrent use.
type Crowd[T comparable] struct {
	most  int
	here  []member[T]
	sizes map[string]int // by group
}

type member[T comparable] struct {
	group string
	who   T
}

// New makes a crowd of at most that many members.
func New[T comparable](most int) *Crowd[T] {
	return &Crowd[T]{most: most, sizes: map[string]int{}}
}

// Add adds a member. If the crowd was full, it removes and returns the oldest member of the largest
// group, counting the new member.
func (c *Crowd[T]) Add(group string, who T) (left T, full bool) {
	c.here = append(c.here, member[T]{group, who})
	c.sizes[group]++
	if len(c.here) <= c.most {
		return left, false
	}
	return c.leave(c.oldestOfLargest()), true
}

// oldestOfLargest is the index of the oldest member of the largest group. Of several largest groups
// it is the one with the oldest member.
func (c *Crowd[T]) oldestOfLargest() int {
	largest := 0
	for _, size := range c.sizes {
		largest = max(largest, size)
	}
	return slices.IndexFunc(c.here, func(m member[T]) bool { return c.sizes[m.group] == largest })
}

// Next removes and returns the oldest member.
func (c *Crowd[T]) Next() (who T, ok bool) {
	if len(c.here) == 0 {
		return who, false
	}
	return c.leave(0), true
}

// Remove removes a member, if it is there.
func (c *Crowd[T]) Remove(who T) {
	if i := slices.IndexFunc(c.here, func(m member[T]) bool { return m.who == who }); i >= 0 {
		c.leave(i)
	}
}

func (c *Crowd[T]) leave(i int) T {
	m := c.here[i]
	c.here = slices.Delete(c.here, i, i+1)
	if c.sizes[m.group]--; c.sizes[m.group] == 0 {
		delete(c.sizes, m.group)
	}
	return m.who
}

// Len is the number of members.
func (c *Crowd[T]) Len() int { return len(c.here) }
