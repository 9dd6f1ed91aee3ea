-- Runs when the image makes a cluster. Databases that are made later copy template1.
\connect template1
CREATE EXTENSION IF NOT EXISTS tacho;
\connect postgres
CREATE EXTENSION IF NOT EXISTS tacho;
