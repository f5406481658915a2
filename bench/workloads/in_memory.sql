-- sqlite3 :memory:; :rows is set by bench/peers.
CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT, number REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
  INSERT INTO t SELECT i, 'word ' || (i * 7919 % 1000), i / 3.0 FROM n;
CREATE INDEX by_word ON t (word);
SELECT word, count(*), round(sum(number), 3) FROM t GROUP BY word ORDER BY 2 DESC, 1 LIMIT 5;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
  SELECT sum(length(upper(printf('%d-%s', i, hex(i)) || group_text))) FROM
    (SELECT i, (SELECT word FROM t WHERE id = i) AS group_text FROM n);
UPDATE t SET number = number * 2, word = word || 'x' WHERE id % 3 = 0;
DELETE FROM t WHERE id % 5 = 0;
SELECT count(*), round(total(number), 3) FROM t;
